"""Available memory of this machine, and amounts of memory and time in words."""

import math
from pathlib import Path

__all__ = ["available_memory", "duration_text", "memory_text"]

#: Files with the memory limit and the memory usage of a container, in bytes: for version 2 of
#: Linux control groups, and for version 1.
CONTAINERS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

#: Units of time, each with its length in seconds.
_UNITS = ((1, "s"), (60, "min"), (3600, "h"), (86400, "days"), (365 * 86400, "years"))

#: The largest amount that is shown, because an integer can exceed any float.
BEYOND_REASON = 1e300


def available_memory() -> int:
    """Return the bytes that this process can still allocate without swapping or being killed.

    The result is the least of: the memory that is free on the machine, the rest of a container's
    limit, and the rest of the process's own limit (``ulimit -v``).

    Examples
    --------
    >>> available_memory() > 2**20
    True
    """
    import psutil  # here, because few commands need it and the import is slow

    found = [int(psutil.virtual_memory().available)]
    for most, used in CONTAINERS:
        try:
            found.append(int(Path(most).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue  # no such control group, or no limit
    try:
        import resource
    except ImportError:  # Windows
        return min(found)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        found.append(limit - int(psutil.Process().memory_info().vms))
    return max(min(found), 0)


def memory_text(size: float) -> str:
    """Return a number of bytes in words.

    Parameters
    ----------
    size : float
        The number of bytes, however large.

    Examples
    --------
    >>> memory_text(2_340_000_000), memory_text(1.2e22), memory_text(10**400)
    ('2.3 GB', '12,000,000 PB', 'more than 10^15 PB')
    """
    size = min(size, BEYOND_REASON)
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.2g} {unit}" if size < 9.95 else f"{size:.0f} {unit}"
    return _large_value_text(size / 1000, "PB")


def duration_text(seconds: float) -> str:
    """Return a number of seconds in words.

    Examples
    --------
    >>> duration_text(42), duration_text(600), duration_text(1e12)
    ('42 s', '10 min', '31,710 years')
    """
    seconds = min(seconds, BEYOND_REASON)
    length, unit = max((u for u in _UNITS if u[0] * 2 <= seconds), default=_UNITS[0])
    return _large_value_text(seconds / length, unit)


def _large_value_text(value: float, unit: str) -> str:
    """Return the number `value` with its unit; from 10^15 on, the text says "more than 10^15"."""
    if math.isinf(value) or value >= 1e15:
        return f"more than 10^15 {unit}"
    return f"{value:,.0f} {unit}" if value >= 9.95 or value == 0 else f"{value:.2g} {unit}"
