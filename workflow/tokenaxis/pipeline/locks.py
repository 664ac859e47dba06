"""Who is at work: locks that the kernel releases when their holder dies, so that none is ever left behind.

Snakemake's own lock stays behind after a SIGKILL and has to be removed by hand; whoever holds `engine` may do that.
Stage scripts take `stage`: a script whose engine was killed works on as an orphan, and the next engine's script for the
same shard waits for it. DVC's scripts, which look at all runs, wait for every shard, and shards wait for them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline.work import ENGINE

_held: list[int] = []


class Busy(TokenAxisError):
    """Somebody else is at work on the sweep."""


def engine(results: Path) -> None:
    """Take the sweep for this process, until it ends.

    Raises:
        Busy: another Snakemake is at work on the sweep.
        TokenAxisError: results cannot be written.
    """
    path = results / ENGINE / "locks" / "snakemake"
    descriptor = _open(path)
    if not _take(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise Busy(
            f"another snakemake (process {holder or 'unknown'}) is at work on {results}",
            remedy="wait until it has ended",
        )
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    _held.append(descriptor)


@contextlib.contextmanager
def stage(
    results: Path, name: str, label: str, one_run: bool, say: Callable[[str], None], wait: bool = True
) -> Iterator[None]:
    """Hold a stage of a shard ("all": of the whole sweep) while the block runs; waits for whoever holds it.

    Args:
        results: results/<sweep>.
        name: the stage.
        label: the shard.
        one_run: only one run of the shard is touched; several such scripts may run at once.
        say: told when there is somebody to wait for.
        wait: False to leave the stage to whoever holds it.

    Raises:
        Busy: somebody holds it and `wait` is False.
    """
    folder = results / ENGINE / "locks"
    whole = fcntl.LOCK_EX if label == "all" and not one_run else fcntl.LOCK_SH
    part = fcntl.LOCK_SH if one_run else fcntl.LOCK_EX
    with contextlib.ExitStack() as stack:
        for path, kind in ((folder / name, whole), (folder / f"{name}-{label}", part)):
            descriptor = _open(path)
            stack.callback(os.close, descriptor)
            if not _take(descriptor, kind | fcntl.LOCK_NB):
                if not wait:
                    raise Busy(f"another process is at work on {name} of {results}")
                say(f"{name}: waiting for another process that is at work on {results}")
                _take(descriptor, kind)
        yield


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TokenAxisError(f"cannot be written: {error.strerror}", file=str(path)) from error


def _take(descriptor: int, kind: int) -> bool:
    """Whether the lock was taken. A file system that knows no locks counts as taken: then nobody can be waited for."""
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
