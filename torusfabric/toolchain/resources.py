"""What this machine has to spare, and amounts of it in words."""

import math
from pathlib import Path

__all__ = ["available_memory", "duration_text", "memory_text"]

#: Limits of a container, and what it uses: of version 2 of control groups, and of version 1.
CONTAINERS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

#: Seconds in each unit of time.
_UNITS = ((1, "s"), (60, "min"), (3600, "h"), (86400, "days"), (365 * 86400, "years"))

#: Larger amounts are not told apart, for an integer may be larger than any float.
BEYOND_REASON = 1e300


def available_memory() -> int:
    """Bytes that this process may still take without others being swapped out or ended.

    Examples
    --------
    >>> available_memory() > 2**20
    True
    """
    import psutil  # here, since few ask and its import takes longer than most small plans

    found = [int(psutil.virtual_memory().available)]
    for most, used in CONTAINERS:
        try:
            found.append(int(Path(most).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue  # no such group, or one without a limit
    try:
        import resource
    except ImportError:  # Windows
        return min(found)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        found.append(limit - int(psutil.Process().memory_info().vms))
    return max(min(found), 0)


def memory_text(size: float) -> str:
    """Bytes in words.

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
    return _huge(size / 1000, "PB")


def duration_text(seconds: float) -> str:
    """Seconds in words.

    Examples
    --------
    >>> duration_text(42), duration_text(600), duration_text(1e12)
    ('42 s', '10 min', '31,710 years')
    """
    seconds = min(seconds, BEYOND_REASON)
    length, unit = max((u for u in _UNITS if u[0] * 2 <= seconds), default=_UNITS[0])
    return _huge(seconds / length, unit)


def _huge(value: float, unit: str) -> str:
    """A number that may be beyond reason."""
    if math.isinf(value) or value >= 1e15:
        return f"more than 10^15 {unit}"
    return f"{value:,.0f} {unit}" if value >= 9.95 or value == 0 else f"{value:.2g} {unit}"
