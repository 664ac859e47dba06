# Stages that look at the whole sweep.


rule runs:
    message:
        "runs: what every file of the sweep is"
    input:
        listing=PLAN.listing(),
        params=PLAN.params("runs"),
        code=PLAN.code("runs"),
    output:
        index=update(PLAN.index("runs", "all")),
    log:
        f"{RESULTS}/.engine/logs/runs.log",
    shell:
        "{PYTHON:q} {SCRIPTS:q}/runs.py --manifest {input.listing:q} --params {input.params:q} "
        "--results {RESULTS:q} --log {log:q}"


rule comparison:
    message:
        "comparison: tables, figures and the report over all runs"
    input:
        runs=PLAN.index("runs", "all"),
        indexes=[PLAN.indexes(stage) for stage in engine.PER_RUN],
        listing=PLAN.listing(),
        params=PLAN.params("comparison"),
        code=PLAN.code("comparison"),
    output:
        index=update(PLAN.index("comparison", "all")),
    log:
        f"{RESULTS}/.engine/logs/comparison.log",
    shell:
        "{PYTHON:q} {SCRIPTS:q}/comparison.py --manifest {input.listing:q} --params {input.params:q} "
        "--results {RESULTS:q} --log {log:q}"
