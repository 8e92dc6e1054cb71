"""How much a mutant may take before it is stopped."""

import resource

__all__ = ["PATIENCE", "WAITING", "limit_memory"]

#: A test that takes more seconds of processor time than this, and ten times its own, hangs; and
#: tests that wait for something else so many seconds.
PATIENCE, WAITING = 20.0, 300.0

#: Bytes that a mutant may fill.
MEMORY = 6 << 30


def limit_memory() -> None:
    """Let this process and its children fail rather than fill the machine."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
