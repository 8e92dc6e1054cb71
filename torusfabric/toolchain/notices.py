"""What a user wants to know while something takes long, said by way of `logging`.

The commands show it on standard error; a program of one's own sees it where it listens to the
logger ``torusfabric``.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

__all__ = ["LOGGER", "called_meanwhile", "say", "said_meanwhile"]

#: Where notices go.
LOGGER = logging.getLogger("torusfabric")

#: Seconds between two looks, and between two notices.
LOOK, PERIOD = 0.2, 15.0


def say(text: str) -> None:
    """Give a notice, a line of text."""
    LOGGER.info("%s", text)


@contextlib.contextmanager
def said_meanwhile(what: str, detail: str, *, when: Callable[[], bool]) -> Iterator[None]:
    """Say during the body what is being done, and now and then how long it has taken so far.

    Parameters
    ----------
    what, detail : str
        What is being done; and what there is to say of it, once.
    when : function of () -> bool
        Whether there is something to say.
    """
    began, said, following = time.monotonic(), False, 0.0

    def look() -> None:
        nonlocal said, following
        seconds = time.monotonic() - began
        if seconds >= following and when():
            say(f"{what}: {seconds:.0f} s so far" if said else f"{what} ({detail})")
            said, following = True, seconds + PERIOD

    with called_meanwhile(look, repeat(LOOK)):
        yield


@contextlib.contextmanager
def called_meanwhile(function: Callable[[], object], pauses: Iterable[float]) -> Iterator[None]:
    """Call a function during the body, each time after a pause of some seconds."""
    over = threading.Event()

    def call() -> None:
        for pause in pauses:
            if over.wait(pause):
                return
            function()

    watcher = threading.Thread(target=call, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
