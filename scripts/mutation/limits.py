"""Limits of time and memory for mutants, and repeatable random examples."""

import resource

from hypothesis import settings

__all__ = ["PATIENCE", "WAITING", "limit_memory", "repeat_examples"]

#: PATIENCE: a test hangs if its processor time exceeds this many seconds plus ten times its usual
#: time. WAITING: the same in seconds of wall-clock time for a run of tests, which may also wait.
PATIENCE, WAITING = 20.0, 300.0

#: Most bytes of memory of a mutant.
MEMORY = 6 << 30


def limit_memory() -> None:
    """Limit the memory of this process and its children. Why: a mutant could fill the machine."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def repeat_examples() -> None:
    """Let Hypothesis generate the same examples each time, so that a mutant is killed again."""
    settings.register_profile("mutation", derandomize=True, database=None)
    settings.load_profile("mutation")
