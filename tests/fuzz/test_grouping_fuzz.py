"""Damaged sweep directories end in runs, refusals and passed-over files: every file accounted for, nothing else raised.

TOKENAXIS_FUZZ=20000 raises the number of mutated directories with that of mutated files; each mutation is seeded.
"""

from __future__ import annotations

import json
import os
import random
import string
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.test_readers_fuzz import DOCUMENTS, _mutate
from tokenaxis.errors import TokenAxisError
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import declared as declarations
from tokenaxis.sweep import inspection, inspection_text
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import Discovery, discover
from tokenaxis.sweep.grouping import group
from tokenaxis.sweep.model import LogFile, Seen
from tokenaxis.sweep.patterns import GroupRule

DIRECTORIES = max(8, int(os.environ.get("TOKENAXIS_FUZZ", "2400")) // 60)
DECLARED = SweepDeclaration(entries=(("*", {"tokens_per_step": 1000.0}),))


def _table(first: int, last: int) -> bytes:
    rows = "".join(f"{step},{4 - step / 1000:.6f}\n" for step in range(first, last))
    return ("step,train_loss\n" + rows).encode()


def _state(last: int) -> bytes:
    history = [{"step": step, "loss": 4 - step / 1000} for step in range(10, last + 1, 10)]
    return json.dumps({"global_step": last, "log_history": history, "logging_steps": 10}, indent=1).encode()


def _metric(every: int) -> bytes:
    return "".join(f"17000000{step:05d} {4 - step / 100:.4f} {step}\n" for step in range(0, 90, every)).encode()


EVENTS = DOCUMENTS["events.out.tfevents.1.host.1.0"]
SWEEP: dict[str, bytes] = {
    "a/log_attempt0.csv": _table(0, 200),
    "a/log_attempt1.csv": _table(150, 400),
    "v/version_0/metrics.csv": _table(0, 300),
    "v/version_1/metrics.csv": _table(200, 500),
    "v/version_1/hparams.yaml": b"n_layer: 12\nmodel: !!python/object:x.Y {n_embd: 768}\n",
    "hf/checkpoint-100/trainer_state.json": _state(100),
    "hf/checkpoint-200/trainer_state.json": _state(200),
    "hf/trainer_state.json": _state(200),
    "tb/events.out.tfevents.1.host.1.0": EVENTS,
    "tb/events.out.tfevents.2.host.1.0": EVENTS[:-30],
    "k/train/events.out.tfevents.1.host.1.0": EVENTS + b"\0",
    "k/validation/events.out.tfevents.1.host.1.1": EVENTS + b"\0\0",
    "mlruns/0/x/metrics/train_loss": _metric(1),
    "mlruns/0/x/metrics/val_loss": _metric(10),
    "mlruns/0/x/params/n_layer": b"12",
    "export_train.csv": DOCUMENTS["export.csv"],
    "export_val.csv": DOCUMENTS["export.csv"].replace(b"train/loss", b"val/loss"),
    "m_0-100.csv": _table(0, 101),
    "m_90-200.csv": _table(90, 201),
    "copy of m.csv": _table(0, 101),
    "config.json": b'{"n_layer": 12}',
    "README.md": b"# nothing\n",
}


def write(folder: Path, rng: random.Random) -> None:
    """The sweep with some of its files damaged, renamed, swapped or gone."""
    contents = dict(SWEEP)
    for name in rng.sample(sorted(contents), rng.randrange(1, 6)):
        kind = rng.randrange(5)
        if kind < 2:
            contents[name] = _mutate(contents[name], rng)
        elif kind == 2:
            del contents[name]
        elif kind == 3:
            contents[name] = contents[rng.choice(sorted(contents))]
        else:
            spot = rng.randrange(len(name))
            other = name[:spot] + rng.choice(string.ascii_letters + string.digits + "._-") + name[spot + 1 :]
            if "/" in name and other.count("/") == name.count("/"):
                contents[other] = contents.pop(name)
    for name, data in contents.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # a renamed file stands where a folder should


def accounted_for(found: Discovery) -> set[str]:
    names = {file.path for run in found.runs for file in run.files}
    return names | {entry["name"] for entry in (*found.refused, *found.passed_over)}


def test_the_undamaged_sweep_makes_its_runs(tmp_path: Path) -> None:
    for name, data in SWEEP.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = discover(tmp_path, DECLARED, [])
    assert [run.name for run in found.runs] == [
        "a/log_attempt0.csv",
        "export_train.csv:gpt2",
        "hf/trainer_state.json",
        "k",
        "m_0-100.csv",
        "mlruns/0/x",
        "tb",
        "v/version_0/metrics.csv",
    ]
    for run in found.runs:
        assert axis_of(tmp_path, run.as_record(), "auto").meta["rows"]["kept"] > 0


def test_a_damaged_sweep_accounts_for_every_file_and_raises_only_the_expected_error(tmp_path: Path) -> None:
    tables = 0
    for seed in range(DIRECTORIES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write(folder, random.Random(f"directory {seed}"))
        cache = tmp_path / f"{seed}.json"
        try:
            found = discover(folder, DECLARED, [".*"], cache)
            files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
            seen = accounted_for(found)
            assert {name for name in files if not any(part.startswith(".") for part in name.split("/"))} <= seen
            assert len({run.id.lower() for run in found.runs}) == len(found.runs)
            assert discover(folder, DECLARED, [".*"], cache) == found
            for run in found.runs:
                try:
                    axis = axis_of(folder, json.loads(json.dumps(run.as_record())), "auto")
                except TokenAxisError as error:
                    assert error.reason
                    continue
                tables += 1
                rows = axis.meta["rows"]
                counted = rows["bad"] + rows["superseded"] + rows["merged"] + rows["kept"]
                assert rows["read"] + rows.get("split", 0) == counted
                assert (np.diff(axis.columns["step"]) > 0).all()
                assert (np.diff(axis.columns["tokens"]) >= 0).all()
                json.dumps(axis.meta, allow_nan=False)
        except Exception as error:
            raise AssertionError(f"directory {seed}: {type(error).__name__}: {error}") from error
    assert tables > 3 * DIRECTORIES


def test_inspecting_a_damaged_sweep_is_text_and_json(tmp_path: Path) -> None:
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write(folder, random.Random(f"inspected {seed}"))
        content = inspection.inspect([folder], SweepDeclaration(), [".*"], "auto")
        assert json.loads(json.dumps(content, allow_nan=False)) == content
        assert inspection_text.to_text(content)


@pytest.mark.parametrize("seed", range(20))
def test_any_names_make_groups_of_all_files_each_once(seed: int) -> None:
    rng = random.Random(seed)
    words = [
        "log",
        "attempt",
        "0",
        "1",
        "_",
        ".",
        "-",
        "/",
        "version_",
        "part",
        "resume",
        "csv",
        "100-200",
        "checkpoint-",
        "a",
    ]
    paths = sorted({"".join(rng.choices(words, k=rng.randrange(1, 9))).strip("/") or "x" for _ in range(60)})
    formats = ["table", "tensorboard", "hf-trainer-state", "mlflow", "jsonl"]
    seen = [Seen(LogFile(path, 1, ""), rng.choice(formats)) for path in paths]
    rule = GroupRule.parsed({"match": "log*[01]?*", "run": "r{1}{3}"}, "x.yaml")
    for declared in (SweepDeclaration(), SweepDeclaration(groups=(rule,), separate=("a*",))):
        groups = group(seen, declared, lambda log, reader: None)
        placed = [file.path for one in groups for file in one.files]
        assert sorted(placed) == paths


def test_declarations_of_any_pattern_never_fail_to_match(tmp_path: Path) -> None:
    for pattern in ("[", "[]", "[!a]x", "***", "a[b", "{1}", "\\", "(", "a|b", "[a-z]*[0-9]", "é*\n"):
        rule = GroupRule.parsed({"match": pattern, "run": "r"}, "x.yaml")
        assert rule.pattern.fullmatch("something else entirely") is None or set(pattern) == {"*"}
        assert declarations.place_of("x", [rule]) is None or set(pattern) == {"*"}
