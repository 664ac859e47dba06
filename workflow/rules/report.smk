# What `snakemake --report report.zip` holds: the comparison's figures with their captions, its page and its main table.
# Which figures there are depends on the logs, so they are looked for when a report is asked for, and no other run of
# Snakemake knows of them: they cost no job and no bookkeeping. Snakemake takes marked files from a rule's input, too.

report: "../report/workflow.rst"


if any(option.split("=")[0] == "--report" for option in sys.argv[1:]):

    COMPARISON = Path(RESULTS) / "comparison"
    CAPTIONS = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)) / ".." / "report"

    rule report:
        default_target: True
        input:
            rules.all.input,
            [
                report(
                    str(COMPARISON / "figures" / f"{caption.stem}.svg"),
                    caption=str(caption),
                    category="Figures",
                    labels={"figure": caption.stem.replace("_", " ")},
                )
                for caption in sorted(CAPTIONS.glob("*.rst"))
                if (COMPARISON / "figures" / f"{caption.stem}.svg").exists()
            ],
