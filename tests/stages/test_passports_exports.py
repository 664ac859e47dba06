"""Exports of real runs, read back with the receiving tools' own code: nothing lost, nothing private, no price."""

from __future__ import annotations

import csv
import getpass
import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.passports_checkout import Checkout, make

PRICE = "price_per_gpu_hour: {value: 71993.25, currency: XTS}"
DECLARED = f"""
loss: val_loss
defaults:
  model: tiny-gpt
  {PRICE}
  facts: {{n_gpus: 1, convention: hf}}
"""
RUN = "gpt_resumed_4Kbs"


@pytest.fixture(scope="module")
def demo(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Two runs of the demo sweep, with a declared price."""
    logs = {name: root / "sweeps" / "tiny-gpt" / name for name in (f"{RUN}.csv", "gpt_sparse_8Kbs.csv")}
    made = make(root, tmp_path_factory.mktemp("exports") / "checkout", "exported", logs, DECLARED)
    made.run_stages()
    assert made.passport(RUN)["cost"]["currency"] == "XTS"
    return made


def rows_of(demo: Checkout) -> list[dict[str, str]]:
    """Rows of the log that count: the resumed attempt's in place of those that it did again."""
    with open(demo.path / "logs" / f"{RUN}.csv", newline="") as file:
        return list({int(row["step"]): row for row in csv.DictReader(file)}.values())


def nothing_private(content: str | bytes) -> None:
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    for word in (socket.gethostname(), str(Path.home()), "71993.", "XTS", "price"):
        # a host may be called by two letters that occur in any file; a word boundary would not help in binary data
        if len(word) > 3:
            assert word not in text, word
    if len(getpass.getuser()) > 4:
        assert getpass.getuser() not in text


class Stored:
    """A .wandb file, taken apart with wandb's own protocol buffers."""

    def __init__(self, folder: Path):
        from wandb.proto import wandb_internal_pb2

        from tokenaxis.readers.formats.wandb_offline import _records

        [self.path] = folder.glob("wandb/offline-run-*/run-*.wandb")
        self.history: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.files: list[str] = []
        self.kinds: set[str] = set()
        for payload in _records(self.path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(payload)
            self.kinds.add(record.WhichOneof("record_type"))
            self._take(record)

    def _take(self, record: Any) -> None:
        def items(update: Any) -> dict[str, Any]:
            return {item.key or item.nested_key[0]: json.loads(item.value_json) for item in update}

        if record.HasField("history"):
            self.history.append(items(record.history.item))
        elif record.HasField("run"):
            self.config |= items(record.run.config.update)
            self.host = record.run.host
        elif record.HasField("summary"):
            self.summary |= items(record.summary.update)
        elif record.HasField("files"):
            self.files += [file.path for file in record.files.files]


@pytest.fixture(scope="module")
def stored(demo: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The run as wandb stored it, offline."""
    folder = tmp_path_factory.mktemp("wandb")
    done = demo.script("export_wandb", RUN, "--project", "tests", "--dir", str(folder))
    assert done.returncode == 0, done.stderr
    return Stored(folder)


def test_wandb_gets_every_loss_on_its_own_step(demo: Checkout, stored: Stored) -> None:
    log = rows_of(demo)
    by_step = {row["_step"]: row for row in stored.history}
    assert len(stored.history) == len(by_step) == len(log) == 2000
    for row in log:
        logged = by_step[int(row["step"])]
        assert logged["train_loss"] == float(row["train_loss"])
        assert logged.get("val_loss") == (float(row["val_loss"]) if row["val_loss"] else None)
        assert logged["tokenaxis/tokens"] == 4000 * int(row["step"])


def test_wandb_gets_reported_series_under_their_own_keys_and_derived_ones_below_a_prefix(stored: Stored) -> None:
    keys = {key for row in stored.history for key in row}
    own = {"train_loss", "val_loss", "lr", "grad_norm", "elapsed_s"}
    derived = {f"tokenaxis/{name}" for name in ("tokens", "tokens_per_step", "attempt", "flops.hf")}
    assert {key for key in keys if not key.startswith("_")} == own | derived


def test_wandb_gets_the_passport_as_config_summary_and_files(demo: Checkout, stored: Stored) -> None:
    document = demo.passport(RUN)
    assert stored.config["model.n_params.value"] == 174464
    assert stored.config["run.name"] == f"{RUN}.csv"
    assert stored.summary["tokenaxis/training.tokens_seen"] == document["training"]["tokens_seen"]
    assert stored.summary["tokenaxis/flops.flops_spent.value"] == document["flops"]["flops_spent"]["value"]
    assert stored.summary["train_loss"] == stored.history[-1]["train_loss"]  # hidden by nothing of ours
    assert {"passport.json", "passport.md"} <= set(stored.files)
    files = stored.path.parent / "files"
    sent = json.loads((files / "passport.json").read_text(encoding="utf-8"))
    assert sent["training"] == document["training"]
    assert "## Training run" in (files / "passport.md").read_text(encoding="utf-8")


def test_wandb_gets_no_price_no_host_no_user_and_no_program(stored: Stored) -> None:
    assert stored.host == ""
    nothing_private(stored.path.read_bytes())
    for file in (stored.path.parent / "files").iterdir():
        assert file.name in ("passport.json", "passport.md"), "machine, packages or code were stored"
        nothing_private(file.read_bytes())
    assert not stored.kinds & {"stats", "output", "output_raw", "environment"}


def test_an_exported_run_is_a_log_like_any_other(demo: Checkout, root: Path, stored: Stored, tmp_path: Path) -> None:
    again = make(root, tmp_path / "again", "again", {"run.wandb": stored.path}, "defaults: {tokens_per_step: 4000}")
    again.run_stages()
    [run] = [path.stem for path in (again.results / "passports").glob("*.json")]
    assert again.passport(run)["training"]["steps"] == 2000
    for loss in ("train_loss", "val_loss"):
        parts = ("value", "step", "count", "first", "best")
        one, other = (made.passport(name)["results"][loss] for made, name in ((demo, RUN), (again, run)))
        assert {part: one[part] for part in parts} == {part: other[part] for part in parts}


def test_without_a_wish_to_send_nothing_is_sent(demo: Checkout, tmp_path: Path) -> None:
    """An environment that asks for online mode does not overrule the missing --online."""
    done = demo.script("export_wandb", RUN, "--project", "p", "--dir", str(tmp_path), WANDB_MODE="online")
    assert done.returncode == 0, done.stderr
    assert "offline-run-" in done.stdout


def events(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def test_tensorboard_reads_every_series_over_steps_and_over_tokens(demo: Checkout, tmp_path: Path) -> None:
    from tokenaxis.export.tensorboard import FILE

    done = demo.script("export_tensorboard", RUN, "gpt_sparse_8Kbs", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpt_resumed_4Kbs", "gpt_sparse_8Kbs"]
    accumulator, log = events(tmp_path / RUN), rows_of(demo)
    losses = accumulator.Scalars("train_loss")
    assert [event.step for event in losses] == [int(row["step"]) for row in log]
    single = np.float32([float(row["train_loss"]) for row in log])  # the format holds single precision
    assert [event.value for event in losses] == [float(value) for value in single]
    assert losses[500].wall_time == float(log[500]["elapsed_s"])
    over_tokens = accumulator.Scalars("tokenaxis/over_tokens/val_loss")
    assert [event.step for event in over_tokens] == [4000 * int(row["step"]) for row in log if row["val_loss"]]
    assert "tokenaxis/tokens" in accumulator.Tags()["scalars"]
    [text] = accumulator.Tensors("tokenaxis/passport")
    assert text.tensor_proto.string_val[0].decode().startswith("## Training run")
    nothing_private((tmp_path / RUN / FILE).read_bytes())


def test_an_event_file_has_the_same_bytes_each_time(demo: Checkout, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert demo.script("export_tensorboard", RUN, "--out", str(tmp_path / name)).returncode == 0
    one, two = (next((tmp_path / name / RUN).iterdir()) for name in ("one", "two"))
    assert (one.name, one.read_bytes()) == (two.name, two.read_bytes())


def test_a_crate_links_logs_program_and_results(demo: Checkout, tmp_path: Path) -> None:
    from rocrate.rocrate import ROCrate

    out = tmp_path / "crate"
    done = demo.script("export_rocrate", RUN, "gpt_sparse_8Kbs", "--out", str(out), "--date", "2026-01-31")
    assert done.returncode == 0, done.stderr
    crate = ROCrate(out)
    assert crate.root_dataset["datePublished"].startswith("2026-01-31")
    action = crate.dereference(f"#{RUN}")
    assert action["instrument"]["name"] == "tokenaxis"
    [log] = action["object"]
    assert log["sha256"] == demo.passport(RUN)["run"]["files"][0]["sha256"]
    names = {entity.id for entity in action["result"]}
    assert names == {f"{RUN}/{name}" for name in ("passport.json", "passport.md", "token_axis.parquet")}
    for name in names:
        assert (out / name).stat().st_size > 0
        nothing_private((out / name).read_bytes())
    again = demo.script("export_rocrate", RUN, "--out", str(out))
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("script", "module", "options"),
    [
        ("export_wandb", "wandb", ("--project", "p")),
        ("export_tensorboard", "tensorboard", ("--out", "out")),
        ("export_rocrate", "rocrate", ("--out", "out")),
    ],
)
def test_a_missing_library_costs_one_line_and_status_2(
    demo: Checkout, tmp_path: Path, script: str, module: str, options: tuple[str, ...]
) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    done = demo.script(script, RUN, *options, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "pip install 'tokenaxis[exports]'" in line
    assert not (demo.path / "out").exists()


@pytest.mark.parametrize(
    ("argument", "said"),
    [("nobody", f"its runs: {RUN}"), ("nowhere/x.json", "no such passport"), ("params.json", "is no passport")],
)
def test_a_run_that_is_not_there_costs_one_line_and_status_2(demo: Checkout, argument: str, said: str) -> None:
    (demo.path / "params.json").write_text("{}", encoding="utf-8")
    done = demo.script("export_tensorboard", argument, "--out", "out")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert said in line


def test_a_passport_without_its_token_axis_is_refused(demo: Checkout, tmp_path: Path) -> None:
    lonely = tmp_path / "passports" / "x.json"
    lonely.parent.mkdir()
    lonely.write_bytes((demo.results / "passports" / f"{RUN}.json").read_bytes())
    done = demo.script("export_tensorboard", str(lonely), "--out", "out")
    assert (done.returncode, "token axis beside this passport" in done.stderr) == (2, True)
