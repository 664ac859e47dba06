# Stages that look at the whole sweep.


rule runs:
    input:
        listing=PLAN.listing(),
        params=PLAN.params("runs"),
        code=PLAN.code("runs"),
    output:
        index=update(PLAN.index("runs", "all")),
    log:
        f"{RESULTS}/.engine/logs/runs.log",
    conda:
        ENVIRONMENT
    message:
        "runs: what every file of the sweep is"
    shell:
        f"{SCRIPTS}/runs.py " "--manifest {input.listing:q} --params {input.params:q} --log {log:q}"


rule comparison:
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
    conda:
        ENVIRONMENT
    message:
        "comparison: tables, figures and the report over all runs"
    shell:
        f"{SCRIPTS}/comparison.py " "--manifest {input.listing:q} --params {input.params:q} --log {log:q}"
