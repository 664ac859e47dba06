"""Run directories of trainmeter 0.0.7, read from their events, against the passports that trainmeter wrote itself.

Where the two differ, the test says which is right, by a third witness: the CSV that the training loop wrote itself.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.stages.passports_checkout import Checkout, make
from tokenaxis.redaction import HIDDEN

RUNS = ("b8", "b32", "dyn", "kill", "resume", "ddp", "tmkilled")
#: the same in both; ddp, dyn and tmkilled differ, each for a reason that a test names
AGREE = ("b8", "b32", "kill", "resume")
NAMES = {"titan": "titan", "megatron": "megatron_simple", "hf": "hf", "all_params": "all_params"}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "logs" / "trainmeter"


@pytest.fixture(scope="module")
def ours(root: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The pipeline's passports of all run directories."""
    logs = {f"{name}/events.jsonl": folder / name / "events.jsonl" for name in (*RUNS, "noagent")}
    made = make(root, tmp_path_factory.mktemp("trainmeter") / "checkout", "trainmeter", logs)
    made.run_stages()
    return made


def our(checkout: Checkout, name: str) -> dict[str, Any]:
    return checkout.passport(f"{name}--events")


def their(folder: Path, name: str) -> dict[str, Any]:
    file = "passport.posthoc.json" if name == "tmkilled" else "passport.json"
    return json.loads((folder / name / file).read_text(encoding="utf-8"))


def logged(folder: Path, file: str) -> list[dict[str, str]]:
    """The training loop's own CSV."""
    with open(folder / "csv" / file, newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("name", AGREE)
def test_steps_tokens_and_progress_agree(ours: Checkout, folder: Path, name: str) -> None:
    one, other = our(ours, name)["training"], their(folder, name)["training"]
    assert (one["steps"], one["tokens_seen"]) == (other["steps"], other["tokens_seen"])
    assert one["tokens_per_step"]["value"] == other["tokens_per_step"]["value"]
    assert (one["budget_tokens"], one["progress"]) == (other["budget_tokens"], other["progress"])


@pytest.mark.parametrize("name", RUNS)
def test_flops_per_token_agree_under_all_four_conventions(ours: Checkout, folder: Path, name: str) -> None:
    one, other = our(ours, name)["flops"], their(folder, name)["flops"]
    assert one["conventions"] == other["conventions"]
    assert one["counted"]["per_token"] == other["counted"]["per_token"]
    for theirs, mine in NAMES.items():
        assert one["by_convention"][mine]["flops_per_token"] == other["conventions"][theirs]
        # the same quotient
        assert one["counted"]["against_conventions"][mine] == other["counted"]["against_conventions"][theirs]


@pytest.mark.parametrize("name", ("b8", "kill", "resume"))
def test_flops_spent_and_required_agree_under_the_convention_that_was_chosen(
    ours: Checkout, folder: Path, name: str
) -> None:
    one, other = our(ours, name)["flops"], their(folder, name)["flops"]
    for key in ("flops_spent", "flops_required"):
        assert one[key]["value"] == other[key]["value"]
        assert one[key]["convention"] == NAMES[other[key]["convention"]]
    assert one["per_token"]["convention_source"] == other["per_token"]["convention_source"] == "declared"


@pytest.mark.parametrize("name", RUNS)
def test_losses_model_versions_and_topology_agree(ours: Checkout, folder: Path, name: str) -> None:
    one, other = our(ours, name), their(folder, name)
    for loss, entry in other["results"].items():
        assert one["results"][loss]["value"] == entry["value"]
        assert one["results"][loss]["count"] == entry["count"]
    for key, fact in other["model"].items():
        assert (one["model"][key]["value"], one["model"][key]["source"]) == (fact["value"], fact["source"])
    assert one["versions"] == other["versions"]
    assert one["topology"]["world_size"] == other["topology"]["world_size"]
    assert one["run"].get("exit_status") == other["run"].get("exit_status")


@pytest.mark.parametrize("name", RUNS)
def test_wall_time_its_parts_and_goodput_agree(ours: Checkout, folder: Path, name: str) -> None:
    one, other = our(ours, name), their(folder, name)
    assert one["run"]["elapsed_s"] == other["run"]["elapsed_s"]
    assert one["run"]["finished"] == other["run"]["finished"]
    # summed in another order
    assert one["efficiency"]["goodput"] == pytest.approx(other["efficiency"]["goodput"], rel=1e-12)
    seconds = {part["name"]: part["s"] for part in one["time"]["parts"]}
    for part in other["time"]["parts"]:
        if part["s"] is not None:  # what trainmeter could not see is no part of ours
            assert seconds.pop(part["name"]) == pytest.approx(part["s"], rel=1e-9)  # differences of clock readings
    assert seconds == {}


@pytest.mark.parametrize("name", RUNS)
def test_the_command_agrees_but_for_the_directory_of_the_interpreter(ours: Checkout, folder: Path, name: str) -> None:
    """Trainmeter leaks the interpreter's full path in the first argument; ours has its last part."""
    one, other = our(ours, name)["run"]["command"], their(folder, name)["run"]["command"]
    assert one[0] == Path(other[0]).name
    assert one[1:] == [HIDDEN if argument == "***" else argument for argument in other[1:]]


def test_dyn_consumed_353280_tokens_and_trainmeter_counted_351744(ours: Checkout, folder: Path) -> None:
    """Ours is right. The loop emitted each batch size one step late, and trainmeter lets an emitted value overrule what
    its agent had counted; the batches that the loop wrote into its CSV add up to ours."""
    truth = sum(int(row["global_batch"]) for row in logged(folder, "dyn.csv"))
    assert truth == 353280
    assert our(ours, "dyn")["training"]["tokens_seen"] == truth
    assert their(folder, "dyn")["training"]["tokens_seen"] == 351744
    batches = [stage["tokens_per_step"] for stage in our(ours, "dyn")["training"]["batch_schedule"]]
    assert batches == [512, 1024, 2048]


def test_dyn_has_an_mfu_since_a_peak_was_declared_and_trainmeter_wants_the_name_of_a_card(
    ours: Checkout, folder: Path
) -> None:
    """Ours is right: 0.05 TFLOP/s were declared for the one device, which is all that MFU needs."""
    document = our(ours, "dyn")
    rate, per_token = document["training"]["tokens_per_s"], document["flops"]["per_token"]["value"]
    assert document["efficiency"]["mfu"]["value"] == pytest.approx(per_token * rate / 0.05e12)  # a few roundings
    assert document["plan"]["mfu"]["planned"] == their(folder, "dyn")["plan"]["mfu"]["planned"] == 0.4
    assert "mfu" not in their(folder, "dyn")["efficiency"]


def test_tmkilled_trained_292_steps_of_which_trainmeter_saw_289(ours: Checkout, folder: Path) -> None:
    """Ours is right as far as the events reach: 292 losses were emitted, one a step, and the last step records were
    lost with the process. The run itself went on to 400 steps, which no event tells."""
    training = our(ours, "tmkilled")["training"]
    assert (training["steps"], their(folder, "tmkilled")["training"]["steps"]) == (292, 289)
    rows = logged(folder, "tmk_512.csv")
    assert len(rows) == 400
    last = our(ours, "tmkilled")["results"]["train_loss"]
    assert last["step"] == 291
    assert float(rows[291]["train_loss"]) == pytest.approx(last["value"], abs=5e-7)  # the CSV has six decimals
    assert training["tokens_seen"] == 292 * 512


def test_ddp_trained_80_steps_and_its_losses_reach_to_step_76(ours: Checkout, folder: Path) -> None:
    """Theirs is right: losses were logged every fifth step, and a token axis ends with its last row. Tokens per step of
    both ranks and both micro-batches agree."""
    one, other = our(ours, "ddp")["training"], their(folder, "ddp")["training"]
    assert (one["steps"], other["steps"]) == (76, 80)
    assert one["tokens_per_step"]["value"] == other["tokens_per_step"]["value"] == 2048
    assert other["tokens_seen"] - one["tokens_seen"] == 4 * 2048
    assert our(ours, "ddp")["topology"]["dp"]["value"] == 2


def test_throughput_is_the_whole_runs_and_trainmeters_is_a_moving_average(ours: Checkout, folder: Path) -> None:
    """Both are right, of different things: tokens over wall time between the losses, and an average of the last ten or
    so step records, which leaves evaluations and checkpoints out."""
    slowest, fastest = 0.5, 2.0  # evaluations and a busy machine: half or twice as fast is the same thing, measured
    for name in AGREE:
        ratio = our(ours, name)["training"]["moving_tokens_per_s"] / their(folder, name)["training"]["tokens_per_s"]
        assert slowest < ratio < fastest, name


def test_a_run_that_says_nothing_of_its_batch_is_refused_by_name(ours: Checkout) -> None:
    refusal = json.loads((ours.results / "token_axis" / "noagent--events.refused.json").read_text(encoding="utf-8"))
    assert "batch size is unknown" in refusal["reason"]


def test_no_host_user_or_directory_of_a_run_header_reaches_an_artifact(ours: Checkout, folder: Path) -> None:
    assert '"host": "node-0"' in (folder / "dyn" / "events.jsonl").read_text(encoding="utf-8")
    for path in ours.results.rglob("*"):
        if path.is_file() and ".engine" not in path.parts:
            content = path.read_bytes()
            for private in (b"node-0", b"/home/user"):
                assert private not in content, f"{private!r} in {path.name}"


def test_wandb_gets_all_299_losses_of_dyn_where_trainmeters_own_export_keeps_116(
    ours: Checkout, folder: Path, tmp_path: Path
) -> None:
    from tests.stages.test_passports_exports import Stored

    done = ours.script("export_wandb", "dyn--events", "--project", "p", "--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    exported = {row["_step"]: row["train_loss"] for row in Stored(tmp_path).history if "train_loss" in row}
    # step 50 was NaN, and trainmeter's emit() drops it: the losses behind it sit one step early in the events
    truth = [float(row["train_loss"]) for row in logged(folder, "dyn.csv") if row["train_loss"] not in ("", "nan")]
    assert len(exported) == len(truth) == 299
    assert list(exported.values()) == pytest.approx(truth, abs=5e-7)  # the CSV has six decimals
