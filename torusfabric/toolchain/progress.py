"""Progress display for long work: a bar on a terminal, otherwise a line now and then.

A display begins with a description of the work, such as ``planning``. Progress is shown wherever
notices are shown: by commands, and in Python programs that listen to the logger ``torusfabric``
(see `torusfabric.toolchain.notices`). The lines are notices. The total duration is logged at the
level `logging.DEBUG`.
"""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator

from .notices import LOGGER, send_notice
from .resources import duration_text

__all__ = ["Progress", "progress_bar", "progress_lines"]

#: The type of a function of (done, total, text=None) that shows progress. The two numbers have any
#: common unit; the text replaces the description of the work.
Progress = Callable[..., None]

#: Seconds until the first line, and the longest pause between lines. Each pause is twice as long
#: as the one before it, up to that limit.
FIRST, LONGEST = 10.0, 60.0


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Context manager: show the progress of the work in its ``with`` block on standard error.

    Parameters
    ----------
    what : str
        Name of the work, such as ``planning``, with which the bar or line begins.

    Yields
    ------
    function of (done, total, text=None)
        To be called with the progress, any number of times.
    """
    if not LOGGER.isEnabledFor(logging.INFO):
        yield lambda *_: None
        return
    began = time.monotonic()
    with _terminal_bar(what) if _has_terminal() else progress_lines(what) as advance:
        yield advance
    LOGGER.debug("%s took %.1f s", what, time.monotonic() - began)


def _has_terminal() -> bool:
    """True if standard error is a terminal; False if it is closed or missing."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


@contextlib.contextmanager
def _terminal_bar(what: str) -> Iterator[Progress]:
    """Context manager: show a bar during its ``with`` block, and remove it at the end.

    `what` is the name of the work, shown before the bar unless the caller gives another text.
    """
    # Here, because only terminals show a bar, and the import takes longer than most small plans.
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
    """Context manager: now and then send a notice of the progress of its ``with`` block.

    Parameters
    ----------
    what : str
        Name of the work, such as ``planning``, with which each notice begins unless the caller
        gives another text.

    Yields
    ------
    function of (done, total, text=None)
        To be called with the progress, any number of times.
    """
    now, began, over = (what, 0.0, 0.0), time.monotonic(), threading.Event()

    def advance(done: float, total: float, text: str | None = None) -> None:
        nonlocal now
        now = text or what, done, total

    def watch() -> None:
        pause = FIRST
        while not over.wait(pause):
            send_notice(_progress_line(*now, time.monotonic() - began))
            pause = min(2 * pause, LONGEST)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield advance
    finally:
        over.set()
        watcher.join()


def _progress_line(what: str, done: float, total: float, seconds: float) -> str:
    """Return a line about the progress after `seconds` seconds: `done` of `total` units of work.

    The line begins with `what`, the name of the work.

    Examples
    --------
    >>> _progress_line("planning", 0, 0, 20.2), _progress_line("checking", 30, 120, 20)
    ('planning: 20 s so far', 'checking: 25 %, 20 s so far, some 60 s more')
    """
    text = f"{duration_text(seconds)} so far"
    if not 0 < done <= total:
        return f"{what}: {text}"
    more = duration_text(seconds * (total - done) / done)
    return f"{what}: {100 * done / total:.0f} %, {text}, some {more} more"
