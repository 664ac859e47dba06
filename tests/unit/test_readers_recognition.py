"""What a file is: a log for some reader, something like a log that lacks something, or no log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError

TABLE = b"step,train_loss\n0,4.0\n1,3.9\n"


def look(folder: Path, name: str, content: bytes, **declared: object) -> readers.Recognition:
    path = folder / name
    path.write_bytes(content)
    return readers.recognise(readers.sample(str(path)), **declared)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("a.csv", TABLE, "table"),
        ("no_ending", TABLE, "table"),
        ("a.tsv", TABLE.replace(b",", b"\t"), "table"),
        ("a.csv", b"\xef\xbb\xbf" + TABLE, "table"),
        ("a.txt", TABLE.replace(b",", b"   "), "table"),
        ("a.jsonl", b'{"step": 0, "loss": 4.0}\n', "jsonl"),
        ("a.log", b'{"meta": {"x": 1}}\n{"train": {"global_step": 0, "loss": 4.0}}\n', "jsonl"),
        ("main.log", b"s:0 tel:11.0\ns:0 trl:11.0 lr:0.1 norm:1.0\n", "llmc-main"),
        ("x.out", b"step    1/100 | loss 4.0 (+nanz)| norm 1.0 (+nanz)| lr 1e-4 | 3 ms\n", "llmc-stdout"),
        ("log.txt", b"0 val 10.9\n0 hella 0.24\n0 train 10.9\n", "build-nanogpt"),
        ("u.txt", b"step:0/10 val_loss:11.0 train_time:0ms step_avg:nanms\n", "modded-nanogpt"),
        ("o.log", b"compiling\niter 0: loss 10.9, time 100.0ms, mfu -100.00%\n", "nanogpt"),
        ("trainer_state.json", b'{"best_metric": null, "log_history": [{"loss": 1.0, "step": 1}]}', "hf-trainer-state"),
    ],
)
def test_a_log_is_known_by_its_content(tmp_path: Path, name: str, content: bytes, reader: str) -> None:
    found = look(tmp_path, name, content)
    assert found.reader is not None
    assert found.reader.name == reader
    assert found.refused is None
    assert found.passed_over is None


def test_source_code_above_the_lines_of_a_log_hides_nothing(tmp_path: Path) -> None:
    source = b"import torch\nstep = 0\n" * 2000
    found = look(tmp_path, "run.txt", source + b"step:1/10 train_loss:3.5 train_time:9ms step_avg:nanms\n")
    assert found.reader is not None
    assert found.reader.name == "modded-nanogpt"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"\n\n", "empty"),
        ("a.csv", b"step,train_loss\n", "no row"),
        ("a.csv", b"step,accuracy\n0,0.5\n", "no loss column"),
        ("a.csv", b"epoch,train_loss\n0,4.0\n", "no step column"),
        ("a.csv", b"0,4.0\n1,3.9\n", "no header"),
        ("a.csv", bytes(range(256)) * 8, "binary"),
        ("a.jsonl", b'{"epoch": 0, "train_loss": 4.0}\n', "no step column"),
        ("a.log", b"Epoch 3 loss: 2.345 done\n", "no format"),
    ],
)
def test_what_looks_like_a_log_and_lacks_something_is_refused(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    found = look(tmp_path, name, content)
    assert found.refused is not None
    assert says in found.refused.reason
    assert found.refused.remedy


def test_a_missing_column_is_refused_with_the_columns_there_are_and_what_to_declare(tmp_path: Path) -> None:
    found = look(tmp_path, "a.csv", b"step,fancy,my_loss\n0,4.0,4.0\n")
    assert found.refused is not None
    assert "'fancy'" in found.refused.reason
    assert "`defaults: {columns: {train_loss: my_loss}}`" in str(found.refused.remedy)


@pytest.mark.parametrize(
    ("names", "declared", "says"),
    [
        ("step,accuracy", {}, "none of them is called like one"),
        ("step,loss_accuracy,loss_scale", {}, "none of them is called like one"),
        ("step,perplexity", {}, "'perplexity' is exp(loss), not the loss"),
        ("step,eval_ppl", {}, "'eval_ppl' is exp(loss)"),
        ("step,bpb", {}, "bits per byte, not nats per token"),
        ("n,train_loss", {"step": "train_loss"}, "'train_loss' is declared as step there"),
    ],
)
def test_no_column_is_suggested_that_is_no_loss(
    names: str, declared: dict[str, str], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{names}\n" + "".join(f"{step}{',4.0' * names.count(',')}\n" for step in range(9)))
    found = readers.recognise(readers.sample(str(path)), None, declared)
    assert found.refused is not None
    assert says in str(found.refused.remedy)
    assert "`" not in str(found.refused.remedy)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("README.md", b"# Runs\n\nThe loss: 2.5 at step 100\n", "documentation"),
        ("config.yaml", b"lr: 1e-3\nsteps: 100\n", "configuration"),
        ("train.py", b"step = 0\nloss = 3.5\n", "source code"),
        ("eval.json", b'{"accuracy": 0.5}', "JSON without"),
        ("model.pt", b"PK\x03\x04" + bytes(100), "checkpoint"),
        ("loss.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "image"),
        ("paper.pdf", b"%PDF-1.5 " + bytes(100), "document"),
        ("runs.ipynb", b'{"cells": [{"source": ["step, loss = 1, 2.5"]}], "nbformat": 4}', "notebook"),
        (".gitkeep", b"", "empty"),
        ("runs.csv", b"name,params\na,124\n", "no known log"),
        ("notes.txt", b"remember the milk\n", "no known log"),
    ],
)
def test_what_is_no_log_is_passed_over(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    found = look(tmp_path, name, content)
    assert found.reader is None
    assert found.refused is None
    assert says in str(found.passed_over)


def test_a_declared_format_gets_the_file_whatever_it_holds(tmp_path: Path) -> None:
    found = look(tmp_path, "README.md", b"x", declared_format="jsonl")
    assert found.reader is not None
    assert found.reader.name == "jsonl"


def test_an_unknown_declared_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    found = look(tmp_path, "a.csv", TABLE, declared_format="cvs")
    assert found.refused is not None
    assert "table" in str(found.refused.remedy)


def test_declared_columns_make_a_log_of_a_table_with_names_of_its_own(tmp_path: Path) -> None:
    content = b"n,ce\n0,4.0\n1,3.9\n"
    assert look(tmp_path, "a.csv", content).reader is None
    found = look(tmp_path, "a.csv", content, declared_columns={"step": "n", "train_loss": "ce"})
    assert found.reader is not None
    assert found.reader.name == "table"


def test_reading_what_is_no_log_is_the_expected_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG" + bytes(50))
    with pytest.raises(TokenAxisError, match="not a training log"):
        readers.read(str(tmp_path / "a.png"))
    with pytest.raises(TokenAxisError, match="cannot be read"):
        readers.read(str(tmp_path / "absent.csv"), Declaration(format="table"))


def test_every_reader_has_a_name_of_its_own_and_is_found_by_it() -> None:
    names = [reader.name for reader in readers.all_readers()]
    assert len(set(names)) == len(names)
    for reader in readers.all_readers():
        assert readers.by_name(reader.name) is reader
        assert reader.about
    with pytest.raises(TokenAxisError, match="no reader"):
        readers.by_name("nonsense")


def test_looking_at_a_file_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TABLE)
    code = (
        "import sys; from tokenaxis import readers; readers.code_digest();"
        f"assert readers.recognise(readers.sample({str(tmp_path / 'a.csv')!r})).reader.name == 'table';"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'scipy', 'matplotlib', 'torch', 'yaml'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reading_a_table_imports_no_pandas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TABLE)
    (tmp_path / "b.csv").write_bytes(TABLE + b"oops,1\n")
    code = (
        "import sys; from tokenaxis import readers;"
        f"readers.read({str(tmp_path / 'a.csv')!r}); readers.read({str(tmp_path / 'b.csv')!r});"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_sample_is_small_whatever_the_file(tmp_path: Path) -> None:
    import gzip

    big = tmp_path / "a.csv"
    big.write_bytes(TABLE + b"2,3.5\n" * 100_000)
    sample = readers.sample(str(big))
    assert (len(sample.head), len(sample.tail), sample.whole) == (8192, 8192, False)
    bomb = tmp_path / "b.csv.gz"
    bomb.write_bytes(gzip.compress(TABLE + bytes(50_000_000)))
    assert len(readers.sample(str(bomb)).head) <= 8192


def test_a_readme_with_a_table_of_losses_is_no_log_unless_declared(tmp_path: Path) -> None:
    table = b"| step | train_loss |\n|---|---|\n| 1 | 3.0 |\n| 2 | 2.9 |\n"
    assert look(tmp_path, "README.md", table).passed_over == "documentation"
    declared = look(tmp_path, "README.md", table, declared_format="table").reader
    assert declared is not None and declared.name == "table"


def test_a_reader_is_found_by_the_name_of_its_module() -> None:
    for reader in readers.all_readers():
        assert readers.by_name(reader.name) is reader
    for name in ("nonsense", "_modded_source", "__init__", "../base", ""):
        with pytest.raises(TokenAxisError, match="no reader is called"):
            readers.by_name(name)
