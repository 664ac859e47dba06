# Stages that go run by run: one job per shard. A job reads its shard's manifest, recomputes what changed, and leaves an
# index (run id -> fingerprint), which the next stage takes as input. Per-run artifacts are not declared: Snakemake's
# bookkeeping of thousands of files would cost more than their arithmetic (docs/decisions.md).


rule token_axis:
    input:
        manifest=PLAN.manifest("{shard}"),
        params=PLAN.params("token_axis"),
        code=PLAN.code("token_axis"),
    output:
        index=update(PLAN.index("token_axis", "{shard}")),
    log:
        f"{RESULTS}/.engine/logs/token_axis-{{shard}}.log",
    conda:
        ENVIRONMENT
    message:
        "token_axis: raw logs onto a token axis, shard {wildcards.shard}"
    shell:
        f"{SCRIPTS}/token_axis.py " "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --keep-going"


rule fits:
    input:
        manifest=PLAN.manifest("{shard}"),
        params=PLAN.params("fits"),
        code=PLAN.code("fits"),
        token_axis=PLAN.index("token_axis", "{shard}"),
    output:
        index=update(PLAN.index("fits", "{shard}")),
    log:
        f"{RESULTS}/.engine/logs/fits-{{shard}}.log",
    conda:
        ENVIRONMENT
    message:
        "fits: crossings, laws and predictions, shard {wildcards.shard}"
    shell:
        f"{SCRIPTS}/fits.py " "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --keep-going"


rule stability:
    input:
        manifest=PLAN.manifest("{shard}"),
        params=PLAN.params("stability"),
        code=PLAN.code("stability"),
        token_axis=PLAN.index("token_axis", "{shard}"),
        fits=PLAN.index("fits", "{shard}"),
    output:
        index=update(PLAN.index("stability", "{shard}")),
    log:
        f"{RESULTS}/.engine/logs/stability-{{shard}}.log",
    conda:
        ENVIRONMENT
    message:
        "stability: predictions on growing windows, shard {wildcards.shard}"
    shell:
        f"{SCRIPTS}/stability.py " "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --keep-going"


rule conventions:
    input:
        manifest=PLAN.manifest("{shard}"),
        params=PLAN.params("conventions"),
        code=PLAN.code("conventions"),
        token_axis=PLAN.index("token_axis", "{shard}"),
        fits=PLAN.index("fits", "{shard}"),
    output:
        index=update(PLAN.index("conventions", "{shard}")),
    log:
        f"{RESULTS}/.engine/logs/conventions-{{shard}}.log",
    conda:
        ENVIRONMENT
    message:
        "conventions: FLOPs under every convention, shard {wildcards.shard}"
    shell:
        f"{SCRIPTS}/conventions.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --keep-going"


rule passports:
    input:
        manifest=PLAN.manifest("{shard}"),
        params=PLAN.params("passports"),
        code=PLAN.code("passports"),
        token_axis=PLAN.index("token_axis", "{shard}"),
        fits=PLAN.index("fits", "{shard}"),
        stability=PLAN.index("stability", "{shard}"),
        conventions=PLAN.index("conventions", "{shard}"),
    output:
        index=update(PLAN.index("passports", "{shard}")),
    log:
        f"{RESULTS}/.engine/logs/passports-{{shard}}.log",
    conda:
        ENVIRONMENT
    message:
        "passports: where each number comes from, shard {wildcards.shard}"
    shell:
        f"{SCRIPTS}/passports.py " "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --keep-going"
