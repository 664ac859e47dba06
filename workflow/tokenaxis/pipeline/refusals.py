"""What Snakemake is told it cannot do here, in one line."""

from __future__ import annotations

import sys

from tokenaxis.errors import TokenAxisError, printable


def refuse_moved_results(results: str, storage: str | None) -> None:
    """Results stand in results/<sweep>, also for a Snakefile that uses this one as a module.

    Args:
        results: what Snakemake makes of the path "results".
        storage: its default storage provider.

    Raises:
        TokenAxisError: they would be elsewhere, which the scripts could not know of.
    """
    if storage is not None:
        raise TokenAxisError(
            f"the storage provider {storage!r} copies declared files only, and artifacts of runs are not declared",
            remedy="docs/cluster.md says how to run without a shared file system",
        )
    if str(results) != "results":
        raise TokenAxisError(
            "a module's prefix is not supported", remedy="tell sweeps apart by name: config: {'sweep': ...}"
        )


def refuse_expansion(texts: list[str]) -> None:
    """Executors put a job's command line between double quotes, in which a shell still expands.

    Raises:
        TokenAxisError: one of the texts holds what it would expand.
    """
    for text in texts:
        if set('"$`').intersection(text):
            raise TokenAxisError(
                f'{printable(text)!r} holds one of " $ `, which the shell of a cluster job would expand',
                remedy="rename the folder, or name the logs in params.yaml in place of --config",
            )


def stop(error: TokenAxisError) -> None:
    """End Snakemake with one line and exit status 2, as every script of the project does."""
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2)
