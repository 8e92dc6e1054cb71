"""How much a mutant may take before it is stopped, and nothing left to chance."""

import resource

from hypothesis import settings

__all__ = ["PATIENCE", "WAITING", "limit_memory", "repeat_examples"]

#: A test that takes more seconds of processor time than this, and ten times its own, hangs; and
#: tests that wait for something else so many seconds.
PATIENCE, WAITING = 20.0, 300.0

#: Bytes that a mutant may fill.
MEMORY = 6 << 30


def limit_memory() -> None:
    """Let this process and its children fail rather than fill the machine."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def repeat_examples() -> None:
    """Let tests draw the same examples each time, so that a mutant is killed again."""
    settings.register_profile("mutation", derandomize=True, database=None)
    settings.load_profile("mutation")
