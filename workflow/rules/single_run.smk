# One run's artifact as a target: snakemake --cores 1 results/<sweep>/fits/<run>.json


rule token_axis_of_run:
    input:
        manifest=lambda wildcards: PLAN.manifest(PLAN.label(wildcards.run)),
        params=PLAN.params("token_axis"),
        code=PLAN.code("token_axis"),
    output:
        update(f"{RESULTS}/token_axis/{{run}}.parquet"),
    log:
        f"{RESULTS}/.engine/logs/token_axis-{{run}}.log",
    conda:
        ENVIRONMENT
    message:
        "token_axis of {wildcards.run}"
    shell:
        f"{SCRIPTS}/token_axis.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --run {wildcards.run:q}"


rule fits_of_run:
    input:
        manifest=lambda wildcards: PLAN.manifest(PLAN.label(wildcards.run)),
        params=PLAN.params("fits"),
        code=PLAN.code("fits"),
        token_axis=f"{RESULTS}/token_axis/{{run}}.parquet",
    output:
        update(f"{RESULTS}/fits/{{run}}.json"),
    log:
        f"{RESULTS}/.engine/logs/fits-{{run}}.log",
    conda:
        ENVIRONMENT
    message:
        "fits of {wildcards.run}"
    shell:
        f"{SCRIPTS}/fits.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --run {wildcards.run:q}"


rule stability_of_run:
    input:
        manifest=lambda wildcards: PLAN.manifest(PLAN.label(wildcards.run)),
        params=PLAN.params("stability"),
        code=PLAN.code("stability"),
        token_axis=f"{RESULTS}/token_axis/{{run}}.parquet",
        fits=f"{RESULTS}/fits/{{run}}.json",
    output:
        update(f"{RESULTS}/stability/{{run}}.parquet"),
        update(f"{RESULTS}/stability/{{run}}.json"),
    log:
        f"{RESULTS}/.engine/logs/stability-{{run}}.log",
    conda:
        ENVIRONMENT
    message:
        "stability of {wildcards.run}"
    shell:
        f"{SCRIPTS}/stability.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --run {wildcards.run:q}"


rule conventions_of_run:
    input:
        manifest=lambda wildcards: PLAN.manifest(PLAN.label(wildcards.run)),
        params=PLAN.params("conventions"),
        code=PLAN.code("conventions"),
        token_axis=f"{RESULTS}/token_axis/{{run}}.parquet",
        fits=f"{RESULTS}/fits/{{run}}.json",
    output:
        update(f"{RESULTS}/conventions/{{run}}.json"),
    log:
        f"{RESULTS}/.engine/logs/conventions-{{run}}.log",
    conda:
        ENVIRONMENT
    message:
        "conventions of {wildcards.run}"
    shell:
        f"{SCRIPTS}/conventions.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --run {wildcards.run:q}"


rule passports_of_run:
    input:
        manifest=lambda wildcards: PLAN.manifest(PLAN.label(wildcards.run)),
        params=PLAN.params("passports"),
        code=PLAN.code("passports"),
        token_axis=f"{RESULTS}/token_axis/{{run}}.parquet",
        fits=f"{RESULTS}/fits/{{run}}.json",
        stability=f"{RESULTS}/stability/{{run}}.json",
        conventions=f"{RESULTS}/conventions/{{run}}.json",
    output:
        update(f"{RESULTS}/passports/{{run}}.md"),
        update(f"{RESULTS}/passports/{{run}}.json"),
    log:
        f"{RESULTS}/.engine/logs/passports-{{run}}.log",
    conda:
        ENVIRONMENT
    message:
        "passports of {wildcards.run}"
    shell:
        f"{SCRIPTS}/passports.py "
        "--manifest {input.manifest:q} --params {input.params:q} --log {log:q} --run {wildcards.run:q}"
