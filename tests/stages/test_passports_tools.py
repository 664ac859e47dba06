"""Scripts around passports, run as a person runs them: differences, counted FLOPs, declared models and prices."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.stages.passports_checkout import Checkout, make

DECLARED = """
targets: [1.6, 1.4]
loss: val_loss
defaults:
  model: shapes/config.json
  seq_len: 125
  planned_tokens: 8.0e+6
runs:
  - match: gpt_16Kbs.csv
    model: model.safetensors
    price_per_gpu_hour: {value: 2.5, currency: EUR}
    facts: {n_gpus: 2}
  - match: gpt_8Kbs.csv
    model: tiny-gpt
"""
CONFIG = {
    "model_type": "gpt2",
    "n_layer": 3,
    "n_embd": 64,
    "n_head": 4,
    "n_positions": 125,
    "vocab_size": 256,
    "activation_function": "gelu_new",
}


def write_safetensors(path: Path) -> None:
    """A checkpoint of one layer, header only as far as anybody looks."""
    shapes = {"wte.weight": [256, 64], "h.0.attn.c_attn.weight": [64, 192], "lm_head.weight": [256, 64]}
    header, offset = {}, 0
    for name, (rows, columns) in shapes.items():
        size = 4 * rows * columns
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(offset))


@pytest.fixture(scope="module")
def sweep(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Three demo runs, each with its model declared another way."""
    names = ("gpt_16Kbs.csv", "gpt_8Kbs.csv", "gpt_short_2Kbs.csv")
    logs = {name: root / "sweeps" / "tiny-gpt" / name for name in names}
    made = make(root, tmp_path_factory.mktemp("tools") / "checkout", "declared", logs, DECLARED)
    (made.path / "shapes").mkdir()  # below the working directory
    (made.path / "shapes" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    write_safetensors(made.path / "logs" / "model.safetensors")  # below the sweep directory
    made.run_stages()
    return made


def test_a_model_may_be_declared_by_a_config_json(sweep: Checkout) -> None:
    model = sweep.passport("gpt_short_2Kbs")["model"]
    assert model["n_layers"] == {"value": 3, "source": "declared", "note": "from shapes/config.json"}
    # 3 blocks of 12 d^2 weights and 13 d biases and norms, both tables, the last norm: GPT-2 at d = 64
    assert model["n_params"]["value"] == 3 * (12 * 64**2 + 13 * 64) + (256 + 125) * 64 + 2 * 64
    assert "hf" in sweep.passport("gpt_short_2Kbs")["flops"]["by_convention"]


def test_a_model_may_be_declared_by_a_checkpoint_below_the_sweep(sweep: Checkout) -> None:
    model = sweep.passport("gpt_16Kbs")["model"]
    counted = 2 * 256 * 64 + 64 * 192
    assert model["n_params"] == {"value": counted, "source": "declared", "note": "from model.safetensors"}
    assert model["tied_embeddings"]["value"] is False
    assert model["n_layers"]["value"] == 1
    assert "n_heads" not in model, "a fact of the sweep's other model got in"


def test_a_model_of_configs_models_is_named_in_the_notes(sweep: Checkout) -> None:
    assert sweep.passport("gpt_8Kbs")["model"]["d_ff"]["note"] == "from configs/models/tiny-gpt.yaml"


def test_no_artifact_holds_the_path_of_the_checkout(sweep: Checkout) -> None:
    for path in sweep.results.rglob("*"):
        if path.is_file() and ".engine" not in path.parts:
            assert str(sweep.path).encode() not in path.read_bytes(), path.name


def test_a_changed_model_file_changes_what_was_made_of_it_and_nothing_else(sweep: Checkout, tmp_path: Path) -> None:
    shutil.copytree(sweep.path, tmp_path / "copy")
    copy = Checkout(tmp_path / "copy", sweep.sweep)
    (copy.path / "shapes" / "config.json").write_text(json.dumps(CONFIG | {"n_layer": 4}), encoding="utf-8")
    said = copy.run_stages()
    assert "conventions: 1 computed, 2 up to date" in said
    assert copy.passport("gpt_short_2Kbs")["model"]["n_layers"]["value"] == 4


def test_a_model_file_that_is_missing_refuses_the_run_by_name(sweep: Checkout, tmp_path: Path) -> None:
    shutil.copytree(sweep.path, tmp_path / "copy")
    copy = Checkout(tmp_path / "copy", sweep.sweep)
    (copy.path / "shapes" / "config.json").write_text("{}", encoding="utf-8")
    (copy.path / "logs" / "model.safetensors").unlink()
    said = copy.run_stages()
    refused = json.loads((copy.results / "runs.json").read_text(encoding="utf-8"))["refused"]
    reasons = {item["name"]: item["reason"] for item in refused}
    assert set(reasons) == {"gpt_16Kbs.csv", "gpt_short_2Kbs.csv"}
    assert "'model.safetensors'" in reasons["gpt_16Kbs.csv"]
    assert "shapes/config.json" in reasons["gpt_short_2Kbs.csv"]
    assert str(tmp_path) not in json.dumps(reasons) + said


def test_a_declared_price_gives_the_cost_in_total_per_million_tokens_and_to_each_target(sweep: Checkout) -> None:
    document = sweep.passport("gpt_16Kbs")
    cost, training = document["cost"], document["training"]
    hours = document["run"]["elapsed_s"] * 2 / 3600
    # products in another order: a few roundings
    assert cost["total"] == pytest.approx(2.5 * hours, rel=1e-12)
    assert cost["per_million_tokens"] == pytest.approx(2.5 * hours / training["tokens_seen"] * 1e6, rel=1e-12)
    assert [entry["target"] for entry in cost["to_target"]] == [1.6, 1.4]
    first = next(target for target in document["targets"] if target["target"] == 1.6)
    seconds = first["tokens"] / training["tokens_per_s"]
    assert cost["to_target"][0]["amount"] == pytest.approx(2.5 * 2 * seconds / 3600, rel=1e-12)
    assert "| Cost | EUR |" in sweep.markdown("gpt_16Kbs")
    assert sweep.passport("gpt_8Kbs")["cost"] == {}


def test_a_price_without_a_currency_is_refused_by_the_schema(sweep: Checkout, tmp_path: Path) -> None:
    shutil.copytree(sweep.path, tmp_path / "copy")
    copy = Checkout(tmp_path / "copy", sweep.sweep)
    file = copy.path / "configs" / "sweeps" / "declared.yaml"
    file.write_text(DECLARED.replace(", currency: EUR", ""), encoding="utf-8")
    done = copy.script("runs")
    assert done.returncode == 2
    assert "price_per_gpu_hour" in done.stderr
    assert "currency" in done.stderr


def test_the_markdown_shows_as_many_digits_as_params_yaml_says(sweep: Checkout, tmp_path: Path) -> None:
    shutil.copytree(sweep.path, tmp_path / "copy")
    copy = Checkout(tmp_path / "copy", sweep.sweep)
    params = (copy.path / "params.yaml").read_text(encoding="utf-8")
    (copy.path / "params.yaml").write_text(re.sub(r"significant_digits: \d+", "significant_digits: 7", params))
    assert copy.script("passports").returncode == 0
    rate = copy.passport("gpt_8Kbs")["training"]["tokens_per_s"]
    shown = [re.search(r"\| Throughput \| ([\d,.]+) tokens/s", text.markdown("gpt_8Kbs"))[1] for text in (sweep, copy)]
    assert [float(number.replace(",", "")) for number in shown] == [float(f"{rate:.4g}"), float(f"{rate:.7g}")]


def test_the_same_passport_differs_in_nothing_with_status_0(sweep: Checkout) -> None:
    done = sweep.script("diff_passports", "gpt_8Kbs", "results/declared/passports/gpt_8Kbs.json")
    assert (done.returncode, done.stdout) == (0, "no difference\n")


def test_two_passports_differ_place_by_place_with_status_1(sweep: Checkout) -> None:
    done = sweep.script("diff_passports", "gpt_8Kbs", "gpt_16Kbs")
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith("training.tokens_per_step.value ")]
    assert line.split() == ["training.tokens_per_step.value", "8,000", "16,000", "2"]


def test_differences_as_json(sweep: Checkout) -> None:
    done = sweep.script("diff_passports", "gpt_8Kbs", "gpt_16Kbs", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["first"], report["second"]) == ("gpt_8Kbs", "gpt_16Kbs")
    found = {entry["place"]: entry for entry in report["differences"]}
    assert found["training.tokens_per_step.value"]["ratio"] == 2
    assert found["cost.currency"] == {"place": "cost.currency", "first": None, "second": "EUR", "only": "second"}


@pytest.mark.parametrize("other", ["nobody", "no/such.json", "params.json"])
def test_what_is_no_passport_costs_one_line_and_status_2(sweep: Checkout, other: str) -> None:
    (sweep.path / "params.json").write_text("[]", encoding="utf-8")
    done = sweep.script("diff_passports", "gpt_8Kbs", other)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")


def test_flops_are_counted_beside_every_convention(sweep: Checkout) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    done = sweep.script("count_flops", "gpt2-124m", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    # every matrix product and the full square, which is what nanochat's formula counts too
    assert report["counted"] == report["conventions"]["nanochat"]
    table = sweep.script("count_flops", "gpt2-124m").stdout
    assert re.search(r"counted +854,654,976\n", table)
    assert re.search(r"nanochat +854,654,976 +1\.0000 of counted", table)


OWN_MODEL = """
import torch

class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(256, 64)
        self.head = torch.nn.Linear(64, 256, bias=False)

    def forward(self, tokens):
        return self.head(self.table(tokens))
"""


def test_flops_of_ones_own_module_are_counted(sweep: Checkout) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    (sweep.path / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    done = sweep.script("count_flops", "own:Tiny", "--seq-len", "16", "--batch", "2", "--json")
    assert done.returncode == 0, done.stderr
    # one matrix of 64 x 256, two FLOPs a weight forward, four backward
    assert json.loads(done.stdout)["counted"] == 6 * 64 * 256


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "configs/models has no such file"),
        (("nobody.json",), "no such file below"),
        (("own:Tiny",), "--seq-len"),
        (("os:nothing", "--seq-len", "8"), "cannot import 'os:nothing'"),
    ],
)
def test_what_cannot_be_counted_costs_one_line_and_status_2(
    sweep: Checkout, arguments: tuple[str, ...], said: str
) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    done = sweep.script("count_flops", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_torch_the_conventions_are_said_all_the_same(sweep: Checkout, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    done = sweep.script("count_flops", "gpt2-124m", "--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["counted"] is None
    assert "torch is not installed" in report["counted_reason"]
    assert report["conventions"]["nanochat"] == 854654976
