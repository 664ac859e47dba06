"""Memory that the C library keeps from one run to the next."""

from __future__ import annotations

import numpy as np

#: more than the temporary arrays of a run of 10,000 rows take in all
KEPT_BYTES = 4 << 20


def keep_freed() -> None:
    """Have glibc keep the memory of freed arrays, where it would return and fetch it anew for every run.

    Each page that comes back has to be cleared: a third of a sweep's time. glibc adapts its limits to the largest block
    that was mapped on its own and freed, and keeps twice as much at the top of its heap (mallopt(3), M_MMAP_THRESHOLD):
    one such block, never touched, is enough. Another C library takes no notice.
    """
    np.empty(KEPT_BYTES, np.uint8)
