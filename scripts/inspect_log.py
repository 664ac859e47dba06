"""What is this log? What was recognised, how, and what has to be declared.

    python scripts/inspect_log.py PATH... [--json] [--sweep NAME] [--declare YAML]

A PATH is a log, which is read with the settings beside it (config.yaml, hparams.yaml, args.json, ...) where its folder
holds no other run, or a folder, which is searched as a sweep directory is. --json prints what
workflow/schemas/inspect.schema.json describes. Exit status: 0; 2 if a path, or a log in a folder, was refused: one line
for each on stderr, and in the output the YAML to paste into configs/sweeps/<sweep>.yaml.
"""

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis import params
from tokenaxis.errors import TokenAxisError
from tokenaxis.sweep import declared, inspection, inspection_text


def parse(argv: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    options.add_argument("--json", action="store_true", help="print JSON instead of text")
    options.add_argument("--sweep", help="use the declarations of configs/sweeps/NAME.yaml")
    options.add_argument("--declare", metavar="YAML", help="declare for every log, e.g. '{tokens_per_step: 524288}'")
    options.add_argument("--params", default="params.yaml", help="file of defaults")
    return options.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    try:
        settings = params.validate(params.load_yaml(params.find(args.params)), "params.schema.json", args.params)
        declaration = declared.on_command_line(args.sweep, args.declare)
        content = inspection.inspect(
            args.paths, declaration, settings["runs"]["ignore"], settings["token_axis"]["tokens_convention"]
        )
    except TokenAxisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.stdout.reconfigure(errors="backslashreplace")
    if args.json:
        print(json.dumps(content, indent=1, sort_keys=True, allow_nan=False))
    else:
        print(inspection_text.to_text(content), end="")
    for line in inspection.as_lines(content):
        print(line, file=sys.stderr)
    return 2 if content["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
