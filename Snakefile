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
from tokenaxis.pipeline import engine, refusals

# A file of one's own counts in one's own directory; a Snakefile that uses this one as a `module` says all in `config:`.
OWN = Path("params.yaml").exists() and workflow.modifier.is_main_snakefile()
PARAMS_FILE = Path("params.yaml") if OWN else HOME / "params.yaml"
GIVEN = dict(config)  # the command line, or the module's `config:`; the file comes below it


configfile: str(PARAMS_FILE)


try:
    refusals.refuse_moved_results(
        workflow.modifier.modify_path("results"), workflow.storage_settings.default_storage_provider
    )
    SETTINGS = engine.settings(config, GIVEN, PARAMS_FILE)
    PLAN = engine.prepare(SETTINGS, workflow.resource_settings.cores, workflow.is_main_process, sys.argv[1:])
except TokenAxisError as error:
    refusals.stop(error)

SCRIPTS = engine.command(HOME / "scripts")
RESULTS = str(PLAN.results)
ENVIRONMENT = engine.escaped(HOME / "workflow" / "envs" / "tokenaxis.yaml")


wildcard_constraints:
    shard=r"\d{3}-of-\d{3}",
    run=r"[A-Za-z0-9_][A-Za-z0-9._-]*",


onstart:
    try:
        engine.on_start(PLAN, workflow.dag_settings, workflow.executor_plugin, GIVEN)
    except TokenAxisError as error:
        refusals.stop(error)


include: "workflow/rules/report.smk"


rule all:
    input:
        PLAN.index("runs", "all"),
        [PLAN.indexes(stage) for stage in engine.PER_RUN],
        PLAN.index("comparison", "all"),
        REPORTED,


include: "workflow/rules/sweep.smk"
include: "workflow/rules/stages.smk"
include: "workflow/rules/single_run.smk"
