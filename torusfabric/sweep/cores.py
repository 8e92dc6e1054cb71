"""Worker processes on this machine, which compute the points of a sweep.

A *point* is one step of a sweep, such as a simulation, with a value for each axis of its grid. For
other machines see `cluster`.

Only the main process writes results. The workers and their tools end with the main process, even if
it is killed. Why: a worker that stays behind could compute the same points as the next sweep.
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
from .grid import Point, point_key
from .results import Row
from .work import compute_row, contents_or_failure, failed_row

__all__ = ["run_on_cores", "check_job_count"]

#: Most points that a process is given at once.
BATCH_POINTS = 64

#: Most processes on one machine. Windows cannot wait for more than about sixty.
MOST_JOBS = 60 if os.name == "nt" else 1024


def check_job_count(jobs: int) -> None:
    """Raise an error for too many processes.

    Raises
    ------
    InputError
        If `jobs` is above `MOST_JOBS`.
    """
    if jobs > MOST_JOBS:
        raise InputError(f"--jobs must be at most {MOST_JOBS} processes, not {jobs}")


def run_on_cores(points: Iterable[Point], jobs: int = 2) -> Generator[Row, None, None]:
    """Compute points in processes of this machine, and yield rows as they are done.

    A point is a step of a sweep with a value for each axis; its row is the point with its result.
    If a process dies, all points that were being computed are suspects. They are computed again,
    one at a time. A point whose process dies again has failed.

    Parameters
    ----------
    points : iterable of Point
        The points to compute.
    jobs : int
        Number of processes.

    Raises
    ------
    InputError
        If `jobs` is above `MOST_JOBS`.
    """
    check_job_count(jobs)
    waiting, suspects = deque(_batch_points(points)), deque[list[Point]]()
    while waiting or suspects:
        alone = bool(suspects)
        source, most = (suspects, 1) if alone else (waiting, jobs)
        running: dict[Future[list[Row]], list[Point]] = {}
        try:
            with _process_pool(most) as pool:
                while source or running:
                    while source and len(running) < most:
                        # Remove the points from the queue only after submit: the pool may have
                        # lost a process just now, and then submit raises an error.
                        contents, lost = contents_or_failure(source[0][0])
                        if lost is not None:
                            source.popleft()
                            yield lost
                            continue
                        with _safe_folder():
                            future = pool.submit(_compute_batch, source[0], contents)
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


def _batch_points(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Yield lists of points of a sweep; one process computes the points of a list in turn.

    Points of the step ``cycles`` that differ only in width or length are in one list, because they
    share a schedule, which the process caches. Any other list has a single point.
    """

    def schedule_key(point: Point) -> str:
        apart = point["step"] != "cycles" or "plan" in point
        lengths = ("width", "flits", "max_flits")
        return point_key(point if apart else point | dict.fromkeys(lengths))

    for _, found in groupby(points, schedule_key):
        while some := list(islice(found, BATCH_POINTS)):
            yield some


def _compute_batch(points: list[Point], plans: Sequence[bytes] | None) -> list[Row]:
    """Compute the rows of some points, one after another, in a worker process.

    A point is a step of a sweep with a value for each axis; its row is the point with its result.
    `plans` are the contents of their schedule files; without `plans`, the files are read.
    """
    return [compute_row(point, plans) for point in points]


@contextlib.contextmanager
def _safe_folder() -> Iterator[str]:
    """Change to the folder of Python's standard modules, and yield the previous folder.

    Why: a new process runs ``python -c``, and Python then searches its current folder for modules
    first. A user's file with the name of a standard module would be imported.
    """
    here = os.getcwd()
    os.chdir(os.path.dirname(os.__file__))
    try:
        yield here
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _process_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of `jobs` processes; an exception in the body terminates them at once."""
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
    """Prepare a worker process: change to a folder, and end this process with its parent.

    A thread waits for the end of the parent, then ends this process and its tools.
    """
    os.chdir(folder)

    def watch_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            multiprocessing.connection.wait([parent.sentinel])
            processes.exit_process(1)

    def stop_worker(*_: object) -> None:
        # In a thread: the handler may have interrupted the owner of the lock of `exit_process`.
        threading.Thread(target=processes.exit_process, args=(1,), daemon=True).start()

    threading.Thread(target=watch_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, stop_worker)
    signal.signal(signal.SIGINT, stop_worker)
