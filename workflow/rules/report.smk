# What `snakemake --report report.zip` holds: the comparison's figures with their captions, its page and its main table.
# Which figures there are depends on the logs, so they are looked for when a report is asked for, and no other run of
# Snakemake knows of them: they cost no job and no bookkeeping. `rule all` takes REPORTED as input, where Snakemake looks
# for marked files as it does among outputs.


report: "../report/workflow.rst"


def reported(comparison):
    """The comparison's files that exist, marked for the report. A figure's caption is workflow/report/<figure>.rst."""
    captions = [path.stem for path in sorted((HOME / "workflow" / "report").glob("*.rst"))]
    files = {comparison / "figures" / f"{name}.svg": (name, "Figures") for name in captions}
    files |= {comparison / "index.html": ("page", "Page"), comparison / "targets.csv": ("table", "Table")}
    found = []
    for path, (caption, category) in files.items():
        if path.exists():
            place = f"workflow/report/{caption}.rst"  # relative to the Snakefile, which names REPORTED
            labels = {"what": path.stem.replace("_", " ")}
            found.append(report(str(path), caption=place, category=category, labels=labels))
    return found


REPORTED = reported(Path(RESULTS) / "comparison") if "--report" in [part.split("=")[0] for part in sys.argv] else []
