"""Reading a log never takes more than four times its size, whole or damaged, beyond what the imports take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: rows of a log: files of 6 to 20 MB, where what does not grow with the file weighs most; below, imports are all of it
ROWS = 300_000
#: prints the high-water mark of this process alone (kB); getrusage would count what the parent had before exec
READ = """
import sys
from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
import numpy, pyarrow.csv, pyarrow.json
try:
    log = readers.read(sys.argv[1], Declaration(), readers.by_name(sys.argv[2]))
    rows = len(log.lines)
except TokenAxisError:
    rows = -1
mark = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, mark.split()[1])
"""


def csv() -> str:
    return "step,train_loss,lr\n" + "".join(f"{i},{2 + 1 / (i + 1):.6f},{1e-3 / (i + 1):.8g}\n" for i in range(ROWS))


def jsonl() -> str:
    record = '{"step": %d, "train_loss": %.6f, "lr": %.8g}\n'
    return "".join(record % (i, 2 + 1 / (i + 1), 1e-3 / (i + 1)) for i in range(ROWS))


def trainer_state() -> str:
    history = [
        {"epoch": i / ROWS, "grad_norm": 0.5, "learning_rate": 1e-4, "loss": 2 + 1 / (i + 1), "step": i + 1}
        for i in range(ROWS // 2)
    ]
    return json.dumps({"best_metric": None, "global_step": ROWS, "logging_steps": 1, "log_history": history}, indent=1)


def curves() -> str:
    return json.dumps({"loss": [2 + 1 / (i + 1) for i in range(ROWS)], "step": list(range(ROWS))})


def records() -> str:
    return json.dumps([{"_step": i, "train/loss": 2 + 1 / (i + 1), "lr": 1e-3} for i in range(ROWS // 2)])


def lines(form: str, rows: int) -> Callable[[], str]:
    return lambda: "".join(form.format(i=i, next=i + 1, loss=2 + 1 / (i + 1)) for i in range(rows))


def damaged(text: Callable[[], str], damage: Callable[[str], str]) -> Callable[[], str]:
    return lambda: damage(text())


LLMC = "step {next:5d}/300000 | loss {loss:.6f} (+nanz)| norm 0.12 (+0.1z)| lr 6.00e-04 | 300.00 ms | 17000 tok/s\n"
MEGATRON = (
    " iteration {next:8d}/  300000 | consumed samples: {i:12d} | elapsed time per iteration (ms): 500.1 | "
    "learning rate: 1.000E-04 | global batch size:   256 | lm loss: {loss:.6E} | grad norm: 0.5 |\n"
)
LOGS: dict[str, tuple[str, Callable[[], str]]] = {
    "csv": ("table", csv),
    "csv, a line of garbage": ("table", damaged(csv, lambda text: text.replace("\n100,", '\ngarbage,,,"\n100,', 1))),
    "csv, cut": ("table", damaged(csv, lambda text: text[:-7])),
    "csv, an open quote": ("table", damaged(csv, lambda text: text.replace("\n100,", '\n"100,', 1))),
    "csv, its second half twice": ("table", damaged(csv, lambda text: text + text[len(text) // 2 :].split("\n", 1)[1])),
    "csv, a word for a loss": ("table", damaged(csv, lambda text: text.replace("\n100,", "\n100,oops", 1))),
    "csv, carriage returns": ("table", damaged(csv, lambda text: text.replace("\n", "\r\n"))),
    "jsonl": ("jsonl", jsonl),
    "jsonl, a broken record": ("jsonl", damaged(jsonl, lambda text: text.replace('{"step": 100,', '{"step": 100', 1))),
    "jsonl, cut": ("jsonl", damaged(jsonl, lambda text: text[:-9])),
    "trainer state": ("hf-trainer-state", trainer_state),
    "trainer state, cut": ("hf-trainer-state", damaged(trainer_state, lambda text: text[: -len(text) // 3])),
    "curves as JSON": ("json-history", curves),
    "records as JSON": ("json-history", records),
    "llm.c": ("llmc-stdout", lines(LLMC, ROWS // 3)),
    "llm.c main.log": ("llmc-main", lines("s:{i} trl:{loss:.6f} lr:0.0006 norm:0.5\n", ROWS)),
    "Megatron": ("megatron", lines(MEGATRON, ROWS // 6)),
    "key-value": ("key-value", lines("step: {i} loss: {loss:.6f} lr: 0.0006 foo\n", ROWS)),
    "build-nanogpt": ("build-nanogpt", lines("{i} train {loss:.6f}\n", ROWS)),
    "modded-nanogpt": ("modded-nanogpt", lines("step:{i}/300000 train_loss:{loss:.4f} train_time:{i}ms\n", ROWS)),
}


def peak(path: Path, reader: str) -> tuple[int, int]:
    """(rows read or -1, bytes at the high-water mark) of a process that reads a log."""
    done = subprocess.run([sys.executable, "-c", READ, str(path), reader], capture_output=True, text=True, check=True)
    rows, kilobytes = done.stdout.split()
    return int(rows), int(kilobytes) * 1024


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a process takes that reads next to nothing."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here: a process's high-water mark is unknown")
    path = tmp_path_factory.mktemp("tiny") / "log.csv"
    path.write_text("step,train_loss\n" + "".join(f"{i},{3 - i / 100}\n" for i in range(20)))
    return peak(path, "table")[1]


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_read_within_four_times_its_size(name: str, imports: int, tmp_path: Path) -> None:
    reader, text = LOGS[name]
    path = tmp_path / "log"
    path.write_text(text(), newline="")
    rows, mark = peak(path, reader)
    size = path.stat().st_size
    assert size > 5e6 and rows > 20_000  # an open quote may swallow lines, not the log
    assert mark - imports < 4 * size, f"{(mark - imports) / size:.2f} times {size / 1e6:.1f} MB"
