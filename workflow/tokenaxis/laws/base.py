"""What a law is, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokenaxis.errors import Notice
from tokenaxis.laws.normal import two_sided

if TYPE_CHECKING:
    import numpy as np

    from tokenaxis.series import LossSeries

#: tokens are counted in this unit inside a law, which keeps the coefficient near 1
TOKEN_UNIT = 1e9
#: an upper bound beyond this many times the observed tokens is reported as unbounded
UNBOUNDED = 1e6
#: nominal levels whose intervals every answer carries
LEVELS = (0.5, 0.8, 0.9)


@dataclass(frozen=True)
class Prediction:
    """What a fitted law says about one target that the log does not reach.

    Attributes:
        status: "predicted", "unreachable" or "not_available".
        tokens: predicted tokens, or None.
        low, high: interval in tokens; high None = unbounded.
        reason: why there is no number, or what the number rests on.
        standard_error: of ln(tokens), model error included; None where there is no number.
        warnings: names and words of what to beware of.
        reached_by_end: probability that the target is reached by the planned end, or None.
        law: the law that answered, where it is not the one that was fitted first.
        interval_at: level -> (low, high) for any level, or None where there is no interval.
    """

    status: str
    tokens: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    standard_error: float | None = None
    warnings: tuple[Notice, ...] = ()
    reached_by_end: float | None = None
    law: str | None = None
    interval_at: Callable[[float], tuple[float | None, float | None]] | None = field(
        default=None, compare=False, repr=False
    )


@dataclass(frozen=True)
class Fitted:
    """A law fitted to one series.

    Attributes:
        law: its name.
        fit_start_step: first step of the rows it was fitted to.
        parameters: JSON-ready, as `fit` in docs/artifacts.md.
        predict: target -> Prediction, for targets that the log does not reach.
        loss_at: (points,) tokens -> (points,) losses under the law, the learning rate going on as it is or as planned.
        warnings: about the fit as a whole.
        end: the loss at the planned end (`planned_end`), or None.
    """

    law: str
    fit_start_step: int
    parameters: dict[str, Any]
    predict: Callable[[float], Prediction]
    loss_at: Callable[[np.ndarray], np.ndarray]
    warnings: tuple[Notice, ...] = ()
    end: dict[str, Any] | None = None


@dataclass(frozen=True)
class NotFitted:
    """No fit, and why. `code` is a short name of the reason."""

    code: str
    reason: str
    fit_start_step: int | None = None
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Law:
    """One law: one module of this package with a module-level `LAW`.

    Attributes:
        name: as `law:` in params.yaml names it.
        formula: in plain text.
        validity: when it may be used.
        citation: where it comes from.
        fit: (series, the `fits` section of the parameters) -> Fitted or NotFitted.
    """

    name: str
    formula: str
    validity: str
    citation: str
    fit: Callable[[LossSeries, dict[str, Any]], Fitted | NotFitted]
    symbols: dict[str, str] = field(default_factory=dict)


def planned_end(tokens: float, loss: float, sd: float, level: float) -> dict[str, Any]:
    """`end` of docs/artifacts.md: the loss at the planned end, its interval at `level` and at every one of LEVELS."""

    def interval_at(level: float) -> tuple[float, float]:
        half = two_sided(level) * sd
        return loss - half, loss + half

    low, high = interval_at(level)
    intervals = {f"{level:g}": list(interval_at(level)) for level in LEVELS}
    return {
        "tokens": tokens,
        "loss": loss,
        "low": low,
        "high": high,
        "interval_level": level,
        "intervals": intervals,
    }


def for_loss(params: dict[str, Any], loss: str | None) -> dict[str, Any]:
    """The `fits` section as it holds for a loss: a row of validation loss is a mean over many batches."""
    return params | {"min_rows": params["min_val_rows"]} if loss == "val_loss" else params
