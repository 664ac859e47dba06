"""Tables as files: formulas are not run by a spreadsheet, numbers come back, bytes are the same every time."""

from __future__ import annotations

import csv
import io

import pytest

from tests.unit.test_comparison_fake_sweep import CONVENTIONS, make_run, make_sweep
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.curves import Shares, read_curve
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.tablefiles import csv_bytes, csv_text, parquet_bytes
from tokenaxis.comparison.tables import Field, Table, build, warnings_of

HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]


def tables_of(sweep: Sweep) -> dict[str, Table]:
    curves = {run.id: read_curve(run, Shares.among(len(sweep.runs)), 0.1) for run in sweep.runs}
    return build(sweep, collect(sweep, None), curves)


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    shown = csv_text(text)
    assert shown.startswith("'")
    assert not any(character in shown for character in "\t\r\n")  # control characters are spelled out


@pytest.mark.parametrize("text", ["gpt_4Kbs", "lr=3e-4", "Größe", 'say "x", y', "'already"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert csv_text(text) == text
    table = Table("t", (Field("a", "text", ""),), [{"a": text}])
    assert rows_of(csv_bytes(table)) == [{"a": text}]


def test_negative_numbers_are_numbers_and_get_no_apostrophe() -> None:
    table = Table("t", (Field("a", "number", ""),), [{"a": -0.25}, {"a": None}, {"a": float("nan")}])
    assert csv_bytes(table) == b'a\n-0.25\n""\n""\n'


def test_numbers_are_written_so_that_they_read_back_the_same() -> None:
    values = [0.1 + 0.2, 1e-17, 2_310_000.123456789, 1e18]
    table = Table("t", (Field("a", "number", ""),), [{"a": value} for value in values])
    assert [float(row["a"]) for row in rows_of(csv_bytes(table))] == values


def test_undecodable_names_are_written_as_escapes() -> None:
    table = Table("t", (Field("a", "text", ""),), [{"a": "caf\udce9"}])
    assert rows_of(csv_bytes(table)) == [{"a": "caf\\xe9"}]
    assert parquet_bytes(table)  # pyarrow refuses lone surrogates


def test_targets_have_a_row_per_run_and_target_with_the_documented_columns() -> None:
    table = tables_of(make_sweep())["targets"]
    documented = [
        "run",
        "target",
        "status",
        "step",
        "tokens",
        "low",
        "high",
        "interval_level",
        "law",
        "horizon",
        "verdict",
        "ratio_to_baseline",
        "warnings",
    ]
    assert [field.name for field in table.fields][: len(documented)] == documented
    assert len(table.rows) == 8 * 4
    first = table.rows[0]
    assert (first["run"], first["target"], first["status"]) == ("gpt_2Kbs", 2.0, "reached")
    assert first["low"] < first["tokens"] < first["high"]
    assert first["hours"] > 0


def test_conventions_have_a_row_per_run_and_convention_and_a_column_per_target() -> None:
    table = tables_of(make_sweep())["conventions"]
    assert len(table.rows) == 8 * len(CONVENTIONS)
    row = table.rows[0]
    assert row["convention"] == "all_params"
    assert row["flops_to_1.60"] > row["flops_to_2.00"] > 0


def test_a_convention_that_lacks_a_fact_keeps_its_row_and_says_why() -> None:
    known, lacking = make_run("known"), make_run("lacking")
    lacking.conventions.update(flops_per_token={"hf": 1e6}, not_available={"titan": "needs n_layers"}, flops_spent={})
    rows = {(row["run"], row["convention"]): row for row in tables_of(Sweep("s", [known, lacking]))["conventions"].rows}
    assert rows["lacking", "titan"]["flops_per_token"] is None
    assert rows["lacking", "titan"]["reason"] == "needs n_layers"


def test_runs_have_rows_attempts_batch_and_last_losses() -> None:
    rows = {row["run"]: row for row in tables_of(make_sweep())["runs"].rows}
    resumed, growing = rows["gpt_resumed_8Kbs"], rows["gpt_growing"]
    assert (resumed["attempts"], resumed["rows_superseded"], resumed["superseded_tokens"]) == (2, 21, 21 * 8000.0)
    assert resumed["rows_read"] == resumed["rows_kept"] + 21
    assert (growing["batch_first"], growing["batch_last"], growing["batch_stages"]) == (4000.0, 16000.0, 2)
    assert resumed["last_train_loss"] is not None and resumed["last_val_loss"] is not None


def test_a_warning_of_two_stages_is_said_once() -> None:
    run = make_run("a", resumed=True)
    run.fits["warnings"] = [*run.axis_meta["warnings"], {"code": "few_rows", "message": "few rows"}]
    assert [entry["code"] for entry in warnings_of(run)] == ["resumed", "few_rows"]


def test_parquet_holds_the_same_rows_with_types() -> None:
    import pyarrow.parquet as pq

    table = tables_of(make_sweep())["runs"]
    stored = pq.read_table(io.BytesIO(parquet_bytes(table)))
    assert stored.to_pylist() == [{field.name: row[field.name] for field in table.fields} for row in table.rows]
    assert str(stored.schema.field("attempts").type) == "int64"


def test_empty_tables_keep_their_header() -> None:
    for table in tables_of(Sweep("s", [])).values():
        header = ",".join(field.name for field in table.fields)
        assert csv_bytes(table).decode().strip() == header
        assert parquet_bytes(table)
