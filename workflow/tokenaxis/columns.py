"""The canonical columns of a token axis: the one place for their names, types, units and aliases."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One canonical column.

    Attributes:
        name: canonical name, used in every artifact.
        kind: "int64", "int32" or "float64" in Parquet.
        unit: unit as shown on axes and in tables.
        about: one line for documentation.
        aliases: normalised names (see `normalise`) under which trainers write it, most specific first.
    """

    name: str
    kind: str
    unit: str
    about: str
    aliases: tuple[str, ...] = ()


COLUMNS: tuple[Column, ...] = (
    Column(
        "step",
        "int64",
        "steps",
        "optimizer step: updates done before this row's loss was computed, as the log counts them",
        # fmt: off
        (
            "step",
            "global_step",
            "trainer_global_step",
            "trainer_step",
            "train_step",
            "train_global_step",
            "current_step",
            "current_steps",
            "optimizer_step",
            "num_steps",
            "steps",
            "iteration",
            "iter",
            "update",
            "num_updates",
            "_step",
            "time_batch",
        ),
        # fmt: on
    ),
    Column(
        "tokens",
        "float64",
        "tokens",
        "tokens consumed before the step",
        # fmt: off
        (
            "tokens",
            "num_tokens",
            "train_num_tokens",
            "train_tokens",
            "total_tokens",
            "tokens_seen",
            "tokens_total",
            "train_tokens_seen",
            "num_tokens_seen",
            "num_input_tokens_seen",
            "train_num_input_tokens_seen",
            "consumed_tokens",
            "trained_tokens",
            "throughput_total_tokens",
            "train_total_tokens",
            "ntokens",
            "n_tokens",
            "n_tokens_seen",
            "time_token",
        ),
        # fmt: on
    ),
    Column(
        "tokens_per_step",
        "float64",
        "tokens/step",
        "global batch in tokens",
        # fmt: off
        (
            "global_batch",
            "tokens_per_step",
            "train_global_batch",
            "global_batch_tokens",
            "global_batch_size_tokens",
            "batch_tokens",
            "batch_size_in_tokens",
            "batch_size_tokens",
            "total_batch_size_tokens",
            "train_tokens_per_step",
        ),
        # fmt: on
    ),
    Column("attempt", "int32", "", "number of the attempt that the row comes from, from 0"),
    Column(
        "train_loss",
        "float64",
        "nats/token",
        "training loss of the step's batch",
        # fmt: off
        (
            "train_loss",
            "training_loss",
            "loss_train",
            "lm_loss",
            "train_lm_loss",
            "train_cross_entropy_loss",
            "train_ce_loss",
            "train_crossentropyloss",
            "cross_entropy_loss",
            "ce_loss",
            "reduced_train_loss",
            "loss_metrics_global_avg_loss",
            "global_avg_loss",
            "train_languagecrossentropy",
            "loss_train_total",
            "train_mean_nll",
            "train_nll",
            "avg_loss",
            "loss",
        ),
        # fmt: on
    ),
    Column(
        "val_loss",
        "float64",
        "nats/token",
        "validation loss",
        # fmt: off
        (
            "val_loss",
            "valid_loss",
            "validation_loss",
            "eval_loss",
            "test_loss",
            "loss_val",
            "val_lm_loss",
            "eval_lm_loss",
            "val_cross_entropy_loss",
            "dev_loss",
            "lm_loss_validation",
            "validation_metrics_loss",
            "eval_languagecrossentropy",
            "val_nll",
            "test_nll",
        ),
        # fmt: on
    ),
    Column(
        "lr",
        "float64",
        "",
        "learning rate",
        # fmt: off
        (
            "lr",
            "learning_rate",
            "train_lr",
            "train_learning_rate",
            "optim_lr",
            "optim_learning_rate",
            "optim_learning_rate_group0",
            "optimizer_lr",
            "lr_0",
            "lr_adamw",
            "lr_group_0",
            "lr_adamw_pg1",
            "optim_lr_(group_0)",
            "lr_decoupledadamw_group0",
            "lr_adam",
            "lr_sgd",
        ),
        # fmt: on
    ),
    Column(
        "grad_norm",
        "float64",
        "",
        "global gradient norm before clipping",
        (
            "grad_norm",
            "gradient_norm",
            "train_grad_norm",
            "optim_total_grad_norm",
            "l2_norm_grad_global",
            "norm",
            "total_norm",
        ),
    ),
    Column(
        "elapsed_s",
        "float64",
        "s",
        "wall time since the start of the attempt",
        ("elapsed_s", "elapsed", "elapsed_time_s", "wall_time_s", "_runtime", "train_time_s", "total_time_s", "time_s"),
    ),
)

BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}
NAMES: tuple[str, ...] = tuple(BY_NAME)
LOSSES: tuple[str, ...] = ("train_loss", "val_loss")
#: columns that a token axis always holds; the others only where the log has them
ALWAYS: tuple[str, ...] = ("step", "tokens", "tokens_per_step", "attempt")


def normalise(name: str) -> str:
    """A column's name for comparison with aliases: trimmed, lower case, separators folded to one underscore.

    >>> normalise(" Train/Loss "), normalise("optim.lr"), normalise("_step")
    ('train_loss', 'optim_lr', '_step')
    """
    return re.sub(r"[\s/.:\-]+", "_", name.strip().lower())
