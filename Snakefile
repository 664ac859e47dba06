# tokenaxis: raw training logs -> token axes, fits, stability sweeps, FLOPs conventions, passports, a comparison.
#
#   snakemake --cores 8                                        the sweep that params.yaml names
#   snakemake --cores 8 --config logs=DIR sweep=NAME           another directory of logs
#
# A job is one stage for one shard of the runs; its scripts recompute only what changed. See docs/decisions.md.
import sys
from pathlib import Path

HOME = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).resolve()
sys.path.insert(0, str(HOME / "workflow"))

from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import engine

PARAMS_FILE = Path("params.yaml") if Path("params.yaml").exists() else HOME / "params.yaml"


configfile: str(PARAMS_FILE)


try:
    SETTINGS = engine.settings(config, workflow.config_settings.overwrite_config, PARAMS_FILE)
    PLAN = engine.prepare(SETTINGS, workflow.cores, drop_stale=workflow.is_main_process and not workflow.dryrun)
except TokenAxisError as error:
    engine.stop(error)

SCRIPTS = engine.command(HOME / "scripts")
RESULTS = str(PLAN.results)


wildcard_constraints:
    shard=r"\d{3}-of-\d{3}",
    run=r"[A-Za-z0-9_][A-Za-z0-9._-]*",


rule all:
    default_target: True
    input:
        PLAN.index("runs", "all"),
        [PLAN.indexes(stage) for stage in engine.PER_RUN],
        PLAN.index("comparison", "all"),


include: "workflow/rules/sweep.smk"
include: "workflow/rules/stages.smk"
include: "workflow/rules/single_run.smk"
