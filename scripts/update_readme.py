"""Write what the demo really prints into README.md: its table, one answer of target_loss.py, and its passports.

    make demo && python scripts/update_readme.py [--check]

What stands between `<!-- demo: NAME -->` and `<!-- end -->` is replaced. With --check nothing is written; the status
is 1 if README.md says something else than the demo does, numbers beyond 1 % included.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSPORTS = ROOT / "results" / "tiny-gpt" / "passports"
TARGET_LOSS = ["scripts/target_loss.py", "sweeps/tiny-gpt/gpt_4Kbs.csv", "--target", "1.6", "1.4"]
#: other processors round the last digits otherwise; a law that changed moves numbers by more
TOLERANCE = 0.01


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="only compare")
    check = options.parse_args().check
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    if not PASSPORTS.is_dir():
        print("error: there are no results of the demo -- run make demo", file=sys.stderr)
        return 2
    new = old
    for name, block in (("table", table()), ("target_loss", target_loss()), ("passports", passports())):
        new = replaced(new, name, block)
    if check:
        same = agree(old, new)
        print(
            "README.md says what the demo does" if same else "README.md is out of date -- run scripts/update_readme.py"
        )
        return 0 if same else 1
    readme.write_text(new, encoding="utf-8")
    return 0


def replaced(text: str, name: str, block: str) -> str:
    """`text` with another content of the block `name`."""
    pattern = re.compile(rf"(<!-- demo: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"README.md has no block {name}")
    return pattern.sub(lambda found: found[1] + block + found[2], text)


def table() -> str:
    """The table that `make demo` ends with."""
    return f"```\n{output(['scripts/comparison.py', '--show']).rstrip()}\n```\n"


def target_loss() -> str:
    """One call of target_loss.py and its answer."""
    return f"```console\n$ python {' '.join(TARGET_LOSS)}\n{output(TARGET_LOSS)}```\n"


def passports() -> str:
    """The part of each passport that is meant for a model card, folded."""
    folded = []
    for path in sorted(PASSPORTS.glob("*.md")):
        shown = path.read_text(encoding="utf-8").split("<details>")[0].split("\n", 1)[1].strip()
        shown = re.sub(r"^### ", "#### ", shown, flags=re.MULTILINE)
        folded.append(f"<details>\n<summary>{path.stem}</summary>\n\n{shown}\n\n</details>\n")
    return "\n".join(folded)


def output(command: list[str]) -> str:
    """What one of the project's scripts prints."""
    run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def agree(old: str, new: str) -> bool:
    """Whether two texts are equal but for numbers within the tolerance."""
    number = re.compile(r"\d[\d,]*\.?\d*")
    if number.sub("#", old) != number.sub("#", new):
        return False
    pairs = zip(number.findall(old), number.findall(new), strict=True)
    values = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) for a, b in values)


if __name__ == "__main__":
    sys.exit(main())
