"""What is being done and how far it has come: a bar on a terminal, elsewhere a line now and then.

It is shown where notices are (see `torusfabric.toolchain.notices`): by the commands, and by a
program that listens to the logger ``torusfabric``. Lines are notices; what something took in all is
a message of the level `logging.DEBUG`.
"""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator

from .notices import LOGGER, say
from .resources import duration_text

__all__ = ["Progress", "progress_bar", "progress_lines"]

#: Shows how much is done of how much, and perhaps of what.
Progress = Callable[..., None]

#: Seconds until the first line, and at most from one line to the next; each wait is twice the last.
FIRST, LONGEST = 10.0, 60.0


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show on standard error how far something has come while it lasts.

    Parameters
    ----------
    what : str
        What is being done: ``planning``.

    Yields
    ------
    function of (done, total, what=None)
        May be called as often as one likes, or never.
    """
    if not LOGGER.isEnabledFor(logging.INFO):
        yield lambda *_: None
        return
    began = time.monotonic()
    with _bar(what) if _on_terminal() else progress_lines(what) as advance:
        yield advance
    LOGGER.debug("%s took %.1f s", what, time.monotonic() - began)


def _on_terminal() -> bool:
    """Whether somebody looks at a terminal; standard error may be closed, or none at all."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


@contextlib.contextmanager
def _bar(what: str) -> Iterator[Progress]:
    """A bar, which is gone at the end."""
    # Here, since only a terminal shows one and its import takes longer than most small plans.
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: float, total: float, text: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=text or what)

        yield advance


@contextlib.contextmanager
def progress_lines(what: str) -> Iterator[Progress]:
    """Give a notice now and then of how far something has come; parameters as of `progress_bar`."""
    now, began, over = (what, 0.0, 0.0), time.monotonic(), threading.Event()

    def advance(done: float, total: float, text: str | None = None) -> None:
        nonlocal now
        now = text or what, done, total

    def watch() -> None:
        pause = FIRST
        while not over.wait(pause):
            say(_line(*now, time.monotonic() - began))
            pause = min(2 * pause, LONGEST)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield advance
    finally:
        over.set()
        watcher.join()


def _line(what: str, done: float, total: float, seconds: float) -> str:
    """What there is to say.

    Examples
    --------
    >>> _line("planning", 0, 0, 20.2), _line("checking", 30, 120, 20)
    ('planning: 20 s so far', 'checking: 25 %, 20 s so far, some 60 s more')
    """
    text = f"{duration_text(seconds)} so far"
    if not 0 < done <= total:
        return f"{what}: {text}"
    more = duration_text(seconds * (total - done) / done)
    return f"{what}: {100 * done / total:.0f} %, {text}, some {more} more"
