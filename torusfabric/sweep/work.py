"""What is done for a point of a sweep, and by whom: processes of this machine; or see `cluster`.

Only the process that started the sweep writes results. Whoever works for it dies with it, so that
nothing is left behind that might still be doing what the next sweep does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import platform
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ..collective import Operator, split_names
from ..errors import InputError, MissingTool, NotEnoughMemory, TorusfabricError, WorkFailed
from ..schedule import Schedule
from ..toolchain import processes
from ..toolchain.folders import remove_work_folders, work_folder
from ..toolchain.version import __version__
from .grid import Point, key, plan_contents
from .results import Results, Row

if TYPE_CHECKING:
    from ..planning.selection import Selection
    from ..program import Program
    from ..rtl import Fabric

__all__ = ["contents_of", "failed_row", "on_cores", "require_processes", "run", "work"]

#: A schedule, or the forms of a collective for messages of any length.
Planned: TypeAlias = Schedule | tuple[Schedule, ...]

#: The most things that a process is given at once.
TOGETHER = 64

#: Plans that are kept for the next rows; they may be large.
KEPT = 16

#: What programs say, by their points without the width: the operators, and cycles.
_PREDICTED: dict[str, tuple[tuple[Operator, ...], dict[str, Any]]] = {}

#: Processes on one machine; Windows cannot wait for more than some sixty.
MOST_JOBS = 60 if os.name == "nt" else 1024


def run(
    points: Sequence[Point],
    results: Results,
    workers: Callable[[list[Point]], Generator[Row, None, None]],
    progress: Callable[[int, int, str], object] | None = None,
) -> dict[str, Any]:
    """Do the points that are not done yet.

    Parameters
    ----------
    workers : function of list of dict -> iterator of row
        Such as `on_cores` with its number of jobs.
    progress : function of (done, total, text), optional

    Returns
    -------
    dict
        Numbers of ``rows`` in all, ``kept`` from before, ``done`` now, ``misfits`` among all; and
        ``failed``, a list of "point: reason".

    Raises
    ------
    MissingTool
        If a tool is not installed where it is needed; what was done is kept.
    """
    todo = [point for point in points if point not in results]
    kept, failed = len(points) - len(todo), []
    report = progress or (lambda *_: None)
    report(kept, len(points), "sweeping")
    with contextlib.closing(workers(todo)) as rows:
        for count, row in enumerate(rows, start=kept + 1):
            if row["status"] == "missing":
                raise MissingTool(row["reason"])
            if row["status"] == "failed":
                failed.append(f"{describe(row)}: {row['reason']}")
            else:
                results.add(row)
            report(count, len(points), describe(row))
    misfits = sum(results.rows[key(p)]["status"] == "misfit" for p in points if p in results)
    done = len(todo) - len(failed)
    return {"rows": len(points), "kept": kept, "done": done, "misfits": misfits, "failed": failed}


def describe(point: Point) -> str:
    """A point in a few words."""
    names = (
        "plan",
        "topology",
        "collective",
        "algorithm",
        "width",
        "flits",
        "max_flits",
        "target",
        "mapping",
    )
    return " ".join(str(point[name]) for name in ("step", *names) if name in point)


def work(point: Point, plans: Sequence[bytes] | None = None) -> Row:
    """Do one thing: a row of results.

    Its ``status`` is done, misfit, failed, or missing (a tool). A misfit follows from the point
    alone: wherever and whenever it is tried again, it is one.

    Parameters
    ----------
    plans : sequence of bytes, optional
        What its schedule files hold; by default they are read.
    """
    began = time.perf_counter()
    try:
        outcome = _outcome(point, plans)
    except MissingTool as error:
        outcome = {"status": "missing", "reason": str(error)}
    except TorusfabricError as error:
        outcome = {"status": "failed", "reason": str(error)}
    except Exception as error:  # a fault of ours must not end the other rows
        outcome = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - began, 3)
    about = {"seconds": seconds, "host": platform.node(), "version": __version__}
    return {"key": key(point), **point, **outcome, **about}


def _outcome(point: Point, plans: Sequence[bytes] | None) -> dict[str, Any]:
    """The status of a point, with its result or with the reason why it does not fit."""
    if plans is None and "plan" in point:
        plans = plan_contents(point)
    make, measure = _STEPS[point["step"]]
    try:
        made = make(point, plans or ())
    except NotEnoughMemory:
        raise
    except InputError as error:
        return {"status": "misfit", "reason": str(error)}
    return {"status": "done", "result": _plain(measure(point, made))}


def _schedules(point: Point, plans: Sequence[bytes]) -> list[Planned]:
    """The schedules of a point, or the forms of each: planned, or from the contents of files."""
    from ..planning import plan_selection, resolve, resolve_forms, select

    if "plan" in point:
        return [*_loaded(point["plan"], plans)]
    best = point["algorithm"] == "best"
    names, most = split_names(point["collective"]), point.get("max_flits")
    found: list[Planned] = []
    for name in names:
        selection = select(
            point["topology"],
            name,
            algorithm=None if best else point["algorithm"],
            ports=point.get("ports"),
            chunks=point.get("chunks"),
            link_latency=point.get("link_latency"),
        )
        selection = replace(selection, planner=_planned)
        if most:
            forms = tuple(map(plan_selection, resolve_forms(selection, most)))
            found.append(forms if len(forms) > 1 else forms[0])
        else:
            any_length = len(names) > 1
            chosen = resolve(selection, flits=point.get("flits"), any_length=any_length)
            found.append(plan_selection(chosen))
    return found


@lru_cache(maxsize=KEPT)
def _planned(selection: Selection) -> Schedule:
    """What is planned, once for all lengths and widths."""
    from ..planning.planned import plan_anew

    return plan_anew(selection)


def _loaded(plan: str, contents: Sequence[bytes]) -> list[Schedule]:
    """The schedules of files with these contents, which need not be on this machine."""
    from ..schedule.file import load

    names = [plan] if len(contents) == 1 else plan.split(",")
    schedules = []
    with work_folder("plan") as folder:
        for name, content in zip(names, contents, strict=True):
            file = folder / ("plan.json.gz" if name.endswith(".gz") else "plan.json")
            file.write_bytes(content)
            try:
                schedules.append(load(file))
            except InputError as error:
                error.args = (str(error).replace(str(file), name), *error.args[1:])
                raise
    return schedules


def _plan(point: Point, schedules: list[Planned]) -> dict[str, Any]:
    """Measure what was planned and checked; lengths do not matter, so that nothing has forms."""
    from ..analysis.facts import facts_together, schedule_facts

    alone = [schedule for schedule in schedules if isinstance(schedule, Schedule)]
    assert alone == schedules
    return facts_together(list(map(schedule_facts, alone)))


def _program(point: Point, plans: Sequence[bytes]) -> Program:
    """The program of a point; what comes from files is checked before."""
    from ..analysis.check import check
    from ..planning import compile

    schedules = _schedules(point, plans)

    for schedule in schedules if "plan" in point else ():
        assert isinstance(schedule, Schedule)
        check(schedule)
    alone = len(schedules) == 1 and isinstance(schedules[0], Schedule)
    whole = schedules[0] if alone else schedules
    return compile(whole, flits=point.get("flits"), max_flits=point.get("max_flits"))


def _fabric(point: Point, plans: Sequence[bytes]) -> Fabric:
    """The fabric of a point."""
    from ..rtl import Fabric

    return Fabric(_program(point, plans), width=point["width"])


def _cycles(point: Point, plans: Sequence[bytes]) -> dict[str, Any]:
    """What the program says, once for all widths: cycles of the runs of a simulation."""
    from ..program.operator_demands import require_width
    from ..simulation.simulate import predictions_of

    name = key(point | {"width": None})
    if name not in _PREDICTED:
        program = _program(point, plans)
        _PREDICTED[name] = program.operators, predictions_of(program)
    operators, found = _PREDICTED[name]
    return found | {"width": require_width(point["width"], operators)}


def _simulate(point: Point, fabric: Fabric) -> dict[str, Any]:
    """Simulate, and compare every word; where there is a choice, some of each."""
    from ..simulation.simulate import simulate

    report = simulate(fabric)
    if not report.passed:
        raise WorkFailed(
            f"Simulation must give the right words in {report.predicted_cycles} cycles, not "
            f"{report.words_wrong} wrong ones in {report.cycles}"
        )
    return report.to_json()


def _synth(point: Point, fabric: Fabric) -> dict[str, Any]:
    """Synthesize."""
    from ..fpga.synthesis.synthesize import Workplace, synthesize

    report = synthesize(
        fabric,
        point["target"],
        pnr=point["pnr"],
        seeds=range(1, point.get("seeds", 1) + 1),
        mapping=point["mapping"],
        workplace=Workplace(jobs=1),
    )
    algorithms = (mode.schedule.algorithm for mode in fabric.program.modes)
    return {"algorithm": ",".join(algorithms)} | report.to_json()


#: Of each step what is made first, and what is measured then.
_STEPS: dict[str, tuple[Callable[..., Any], Callable[..., dict[str, Any]]]] = {
    "plan": (_schedules, _plan),
    "cycles": (_cycles, lambda point, found: found),
    "simulate": (_fabric, _simulate),
    "synth": (_fabric, _synth),
}


def _plain(value: Any) -> Any:
    """A value of numbers and text alone, as JSON has them."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "denominator") and not isinstance(value, (bool, int)):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def failed_row(point: Point, reason: str) -> Row:
    """A row of what failed."""
    return {"key": key(point), **point, "status": "failed", "reason": reason}


def contents_of(point: Point) -> tuple[list[bytes], None] | tuple[None, Row]:
    """What the files of a point hold, which goes to its worker; or the row if that is lost."""
    try:
        return plan_contents(point) if "plan" in point else [], None
    except InputError as error:
        return None, failed_row(point, str(error))


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

    def leave() -> None:
        processes.stop_all()
        remove_work_folders()
        os._exit(1)

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            multiprocessing.connection.wait([parent.sentinel])
            leave()

    def stop(*_: object) -> None:
        # Not in the handler, which may have interrupted the holder of a lock that this needs.
        threading.Thread(target=leave, daemon=True).start()

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
