"""First, best and last loss come from the rows that have one, and reach the passport."""

from __future__ import annotations

import numpy as np

from tests.unit.test_passport import axis, fits, passport
from tokenaxis.axis.losses import summarise

COLUMNS = {
    "step": np.array([0, 1, 2, 3, 8]),
    "tokens": np.array([0.0, 512, 1024, 1536, 6144]),
    "train_loss": np.array([np.nan, 5.0, 3.0, 3.5, np.nan]),
    "val_loss": np.full(5, np.nan),
}


def test_rows_without_a_loss_do_not_count() -> None:
    assert summarise(COLUMNS) == {
        "train_loss": {
            "rows": 3,
            "first": {"loss": 5.0, "step": 1, "tokens": 512.0},
            "best": {"loss": 3.0, "step": 2, "tokens": 1024.0},
            "last": {"loss": 3.5, "step": 3, "tokens": 1536.0},
        }
    }
    assert summarise({"step": COLUMNS["step"], "tokens": COLUMNS["tokens"]}) == {}


def test_the_passport_shows_them_beside_the_smoothed_loss() -> None:
    document = passport(axis_meta=axis(losses=summarise(COLUMNS)))
    result = document["results"]["train_loss"]
    assert (result["value"], result["step"], result["count"], result["key"]) == (3.5, 3, 3, "loss")
    assert (result["first"]["loss"], result["best"]["loss"], result["smoothed"]["loss"]) == (5.0, 3.0, 3.9)
    assert document["not_available"]["results.val_loss"] == "not in the log"


def test_a_loss_that_the_axis_holds_and_does_not_summarise_is_said_to_be_so() -> None:
    rows = axis()["rows"] | {"with_val_loss": 7}
    document = passport(axis_meta=axis(rows=rows), fitted=fits(loss="train_loss"))
    assert document["results"]["train_loss"]["smoothed_only"] is True
    assert document["not_available"]["results.val_loss"].startswith("7 rows have it")
