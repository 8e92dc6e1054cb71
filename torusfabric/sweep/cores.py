"""Who does the points of a sweep: processes of this machine; or see `cluster`.

Only the process that started the sweep writes results. Whoever works for it dies with it, so that
nothing is left behind that might still be doing what the next sweep does.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import groupby, islice

from ..errors import InputError
from ..toolchain import processes
from .grid import Point, key
from .results import Row
from .work import contents_of, failed_row, work

__all__ = ["on_cores", "require_processes"]

#: The most things that a process is given at once.
TOGETHER = 64

#: Processes on one machine; Windows cannot wait for more than some sixty.
MOST_JOBS = 60 if os.name == "nt" else 1024


def require_processes(jobs: int) -> None:
    """Refuse more processes than a machine has use for.

    Raises
    ------
    InputError
        If there are more than `MOST_JOBS`.
    """
    if jobs > MOST_JOBS:
        raise InputError(f"--jobs must be at most {MOST_JOBS} processes, not {jobs}")


def on_cores(points: Iterable[Point], jobs: int = 2) -> Generator[Row, None, None]:
    """Do points in processes of this machine; rows in the order in which they are done.

    Where a process dies, those that were under way are done again, one at a time, and the one
    whose process dies again has failed.

    Raises
    ------
    InputError
        If there are more than `MOST_JOBS` jobs.
    """
    require_processes(jobs)
    waiting, suspects = deque(_together(points)), deque[list[Point]]()
    while waiting or suspects:
        alone = bool(suspects)
        source, most = (suspects, 1) if alone else (waiting, jobs)
        running: dict[Future[list[Row]], list[Point]] = {}
        try:
            with _pool(most) as pool:
                while source or running:
                    while source and len(running) < most:
                        # It is taken only when the pool has it, which may just have lost a process.
                        contents, lost = contents_of(source[0][0])
                        if lost is not None:
                            source.popleft()
                            yield lost
                            continue
                        with _safe_folder():
                            future = pool.submit(_work_all, source[0], contents)
                        running[future] = source.popleft()
                    if not running:
                        break
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        rows = future.result()
                        del running[future]
                        yield from rows
        except BrokenProcessPool:
            if alone:
                yield from (failed_row(point, "its process died twice")
                            for each in running.values() for point in each)  # fmt: skip
            else:
                suspects.extend([point] for each in running.values() for point in each)


def _together(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Points for one process each time: cycles of the same plan, or a single one."""

    def shared(point: Point) -> str:
        apart = point["step"] != "cycles" or "plan" in point
        lengths = ("width", "flits", "max_flits")
        return key(point if apart else point | dict.fromkeys(lengths))

    for _, found in groupby(points, shared):
        while some := list(islice(found, TOGETHER)):
            yield some


def _work_all(points: list[Point], plans: Sequence[bytes] | None) -> list[Row]:
    """Do some things, one after another."""
    return [work(point, plans) for point in points]


@contextlib.contextmanager
def _safe_folder() -> Iterator[str]:
    """Start processes in the folder of Python's own modules; yields the current one.

    A process starts with ``-c``, for which Python puts its folder first on the path of modules:
    what a user has there under the name of a module would be run.
    """
    here = os.getcwd()
    os.chdir(os.path.dirname(os.__file__))
    try:
        yield here
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes are ended, not waited for, when its user leaves early."""
    context = multiprocessing.get_context("spawn")
    with _safe_folder() as here:
        begin = partial(_begin_worker, here)
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown()


def _begin_worker(folder: str) -> None:
    """Work in a folder, and see that this process and its tools end with what started it."""
    os.chdir(folder)

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            multiprocessing.connection.wait([parent.sentinel])
            processes.leave(1)

    def stop(*_: object) -> None:
        # Not in the handler, which may have interrupted the holder of a lock that this needs.
        threading.Thread(target=processes.leave, args=(1,), daemon=True).start()

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
