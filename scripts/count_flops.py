"""FLOPs per token of a model: counted by torch's FlopCounterMode, beside what every convention says.

    python scripts/count_flops.py MODEL [--seq-len N] [--json]
    python scripts/count_flops.py module:callable --seq-len N [--batch B] [--shape MODEL] [--json]

MODEL is a name of configs/models, or the path of a config.json, an argument dump, a .safetensors or a torch checkpoint:
a decoder of that shape is run on the meta device, without weights. `module:callable` is your own: called without
arguments it returns a torch.nn.Module that takes token ids; with --shape it is compared with that model's conventions.
Without torch the conventions are printed and the count is not available. --json prints {"counted", "counted_reason",
"conventions": {name: FLOPs per token}, "not_available": {name: reason}}. Exit status: 0; 2 for an expected failure.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from tokenaxis.conventions.compute import count
from tokenaxis.conventions.counted import count_callable, count_shape
from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import gather
from tokenaxis.shapes import complete
from tokenaxis.sweep import models


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", metavar="MODEL|module:callable")
    options.add_argument("--shape", metavar="MODEL", help="shape of the model that module:callable makes")
    options.add_argument("--seq-len", type=int, help="tokens per sequence (default: as MODEL says)")
    options.add_argument("--batch", type=int, default=1, help="sequences that module:callable is run on (default: 1)")
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = options.parse_args(argv)
    try:
        report = compare(args)
    except TokenAxisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report, indent=1, sort_keys=True) if args.json else as_text(report))
    return 0


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """The count and the conventions.

    Raises:
        TokenAxisError: the model cannot be read, or the callable cannot be run.
    """
    own = ":" in args.model
    described = args.shape if own else args.model
    shape = None
    if described is not None:
        facts = models.facts(described, None, None)
        stated = {"facts": facts, "seq_len": args.seq_len}
        shape = complete(gather(stated))
    counts = None if shape is None else count(shape)
    counted, reason = None, None
    if own:
        if args.seq_len is None:
            raise TokenAxisError("module:callable is run on a sequence", remedy="say how long: --seq-len 1024")
        sys.path.insert(0, "")
        counted = count_callable(args.model, args.batch, args.seq_len)
    else:
        try:
            counted = count_shape(shape)
        except TokenAxisError as error:
            reason = str(error)
    return {
        "counted": counted,
        "counted_reason": reason,
        "conventions": {} if counts is None else counts.flops_per_token,
        "not_available": {} if counts is None else counts.not_available,
    }


def as_text(report: dict[str, Any]) -> str:
    """A table: convention, FLOPs per token, its share of the count."""
    counted = report["counted"]
    rows = [("counted", report["counted_reason"] or f"{counted:,.0f}", "")]
    for name, flops in sorted(report["conventions"].items(), key=lambda item: item[1]):
        rows.append((name, f"{flops:,.0f}", "" if counted is None else f"{flops / counted:.4f} of counted"))
    rows += [(name, f"not available: {reason}", "") for name, reason in sorted(report["not_available"].items())]
    width = max(len(name) for name, _, _ in rows)
    return "\n".join(f"{name:{width}}  {value:>18}  {share}".rstrip() for name, value, share in rows)


if __name__ == "__main__":
    sys.exit(main())
