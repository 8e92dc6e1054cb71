"""The work of a sweep: `compute_row` computes the row of one point, `compute_rows` all rows.

A *point* is one step of a sweep, such as a simulation, with a value for each axis of its grid. Its
*row*, a line in the file of results, is the point with its result. `cores` and `cluster` call
`compute_row` in other processes or on other machines.
"""

from __future__ import annotations

import contextlib
import json
import platform
import time
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..collective import Operator
from ..errors import InputError, MissingTool, NotEnoughMemory, TorusfabricError, WorkFailed
from ..schedule import Schedule
from ..toolchain.folders import work_folder
from ..toolchain.values import plain_json
from ..toolchain.version import __version__
from .grid import Point, file_contents, point_key
from .results import Results, Row

if TYPE_CHECKING:
    from ..fabric.fabric import Fabric
    from ..planning.selection import Selection
    from ..program import Program

__all__ = ["contents_or_failure", "describe_point", "failed_row", "compute_rows", "compute_row"]

#: A schedule, or the forms of a collective for messages of any length.
PlannedSchedule: TypeAlias = Schedule | tuple[Schedule, ...]

#: Keys of a point that are inputs of planning.
CHOICES = ("topology", "collective", "ports", "chunks", "link_latency")

#: Schedules, and predictions of programs, that a process caches for its next rows. Few, because
#: schedules may be large.
CACHED_SCHEDULES = 16


def compute_rows(
    points: Sequence[Point],
    results: Results,
    workers: Callable[[list[Point]], Generator[Row, None, None]],
    progress: Callable[[int, int, str], object] | None = None,
) -> dict[str, Any]:
    """Compute the rows of all points that have none yet, and add them to the results.

    A *point* is a step of a sweep with a value for each axis; its *row* is the point with its
    result.

    Parameters
    ----------
    points : sequence of Point
        All points of the sweep.
    results : Results
        The open file of results.
    workers : function of (list of Point) -> generator of Row
        Computes the rows of points, such as `run_on_cores` with its number of jobs.
    progress : function of (done, total, text), optional
        Called after each row.

    Returns
    -------
    dict
        ``rows``: number of all points. ``kept``: points that had a row before. ``done``: points
        whose rows were added now. ``misfits``: rows with the status ``misfit``, among ``kept`` and
        ``done``. ``failed``: a text "point: reason" for each failed point.

    Raises
    ------
    MissingTool
        If a tool is not installed where a worker needs it. Rows that were done stay in the file.
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
                failed.append(f"{describe_point(row)}: {row['reason']}")
            else:
                results.add(row)
            report(count, len(points), describe_point(row))
    misfits = sum(results.rows[point_key(p)]["status"] == "misfit" for p in points if p in results)
    done = len(todo) - len(failed)
    return {"rows": len(points), "kept": kept, "done": done, "misfits": misfits, "failed": failed}


def describe_point(point: Point) -> str:
    """Return the values of a point (a step with a value for each axis) as a short text.

    The text is for progress and errors.
    """
    names = "step plan topology collective traffic counts algorithm width flits max_flits target"
    names += " mapping"
    return " ".join(str(point[name]) for name in names.split() if name in point)


def compute_row(point: Point, plans: Sequence[bytes] | None = None) -> Row:
    """Compute the row of one point: the point with its result, or with the reason of an error.

    The ``status`` of the row is:

    - ``done``;
    - ``misfit``: the point can never be computed, for example because no algorithm is suitable;
    - ``failed``: another error, which need not come again at the next try;
    - ``missing``: a tool is not installed.

    Parameters
    ----------
    point : Point
        A step of a sweep (plan, cycles, simulate or synth), with a value for each axis.
    plans : sequence of bytes, optional
        Contents of its files; by default the files are read.
    """
    began = time.perf_counter()
    try:
        outcome = _point_outcome(point, plans)
    except MissingTool as error:
        outcome = {"status": "missing", "reason": str(error)}
    except TorusfabricError as error:
        outcome = {"status": "failed", "reason": str(error)}
    except Exception as error:  # a defect of the program must not end the other rows
        outcome = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - began, 3)
    about = {"seconds": seconds, "host": platform.node(), "version": __version__}
    return {"key": point_key(point), **point, **outcome, **about}


def _point_outcome(point: Point, plans: Sequence[bytes] | None) -> dict[str, Any]:
    """Return the result of a point, as the entries by which the point becomes its row.

    `point` is a step of a sweep, with a value for each axis. The entries are the ``status``
    ``done`` and the ``result``; or the ``status`` ``misfit`` and the ``reason``, if the point
    cannot be planned or built. `plans` has the contents of its files. If it is None, the
    files are read here.
    """
    if plans is None:
        plans = file_contents(point)
    make, measure = _STEPS[point["step"]]
    try:
        made = make(point, plans or ())
    except NotEnoughMemory:
        raise
    except InputError as error:
        return {"status": "misfit", "reason": str(error)}
    return {
        "status": "done",
        "result": json.loads(json.dumps(measure(point, made), default=plain_json)),
    }


def _make_schedules(point: Point, plans: Sequence[bytes]) -> list[PlannedSchedule]:
    """Return the schedules of a point of a sweep, planned or from files.

    There is one entry for each collective: a schedule, or a tuple with the schedule of each form.
    `plans` are the contents of the files.
    """
    from ..fabric.choose import PlanPurpose, choose_schedules
    from ..fabric.spec import FabricSpec

    if "plan" in point:
        return [*_load_schedules(point["plan"], plans)]
    choices = {name: point[name] for name in CHOICES if name in point}
    if point["algorithm"] != "best":
        choices["algorithm"] = point["algorithm"]
    most = point.get("max_flits")
    purpose = PlanPurpose(
        most or point.get("flits"),
        any_length=bool(most),
        with_forms=bool(most),
        planner=_cached_schedule,
    )
    with work_folder("traffic") as folder:
        # The files themselves may be on another machine.
        if "counts" in point:
            choices["counts"] = _write_file(folder, point["counts"], plans[-1])
        if "traffic" in point:
            names = (
                point["traffic"].split(",")
                if len(plans) > 1 + ("counts" in point)
                else [point["traffic"]]
            )
            choices["traffic"] = ",".join(
                _write_file(folder, name, content)
                for name, content in zip(names, plans, strict=False)
            )
        chosen = choose_schedules(FabricSpec(**choices), purpose)
    return [one.schedules_to_compile for one in chosen]


def _write_file(folder: Path, name: str, content: bytes) -> str:
    """Write the content of a file of a point into a folder; return the path of the new file."""
    file = folder / f"{len([*folder.iterdir()])}{'.gz' * name.endswith('.gz')}"
    file.write_bytes(content)
    return str(file)


@lru_cache(maxsize=CACHED_SCHEDULES)
def _cached_schedule(selection: Selection) -> Schedule:
    """Return the schedule for a selection, from a cache or else planned.

    Points of a sweep that differ only in lengths or widths share the schedule.
    """
    from ..planning.selection_schedule import plan_with_algorithm

    return plan_with_algorithm(selection)


def _load_schedules(plan: str, contents: Sequence[bytes]) -> list[Schedule]:
    """Return the schedules in files, given the contents of the files.

    `plan` has the paths of the files, for messages; the files themselves may be on another machine.
    """
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


def _plan_facts(point: Point, schedules: list[PlannedSchedule]) -> dict[str, Any]:
    """Check the schedules of a point, and return the result of the step ``plan``.

    The result has, for example, the number of rounds; see `schedule_facts`. The step ``plan`` has
    no lengths of messages, so no collective has several forms.
    """
    from ..analysis.facts import merge_facts, schedule_facts

    alone = [schedule for schedule in schedules if isinstance(schedule, Schedule)]
    assert alone == schedules
    return merge_facts(list(map(schedule_facts, alone)))


def _make_program(point: Point, plans: Sequence[bytes]) -> Program:
    """Return the compiled program of a point (a step of a sweep, with a value for each axis).

    Schedules from files are checked first. `plans` has the contents of these files; it is empty for
    a point without files.
    """
    from ..analysis.check import check
    from ..planning import compile

    schedules = _make_schedules(point, plans)
    for schedule in schedules if "plan" in point else ():
        assert isinstance(schedule, Schedule)
        check(schedule)
    alone = len(schedules) == 1 and isinstance(schedules[0], Schedule)
    whole = schedules[0] if alone else schedules
    return compile(whole, flits=point.get("flits"), max_flits=point.get("max_flits"))


def _make_fabric(point: Point, plans: Sequence[bytes]) -> Fabric:
    """Plan, compile and build the fabric of a point of a sweep, with a host port.

    `plans` has the contents of the schedule files of the point, if it has any.
    """
    from ..fabric.fabric import Fabric

    return Fabric(_make_program(point, plans), width=point["width"])


def _predict_cycles(point: Point, plans: Sequence[bytes]) -> dict[str, Any]:
    """Return the result of the step ``cycles``: cycles of runs, predicted without a simulation.

    It has the entries of a simulation report that are known without one; see `predicted_entries`.
    `plans` has the contents of the schedule files of the point, if it has any.
    """
    from ..program.program import require_width

    others = {name: value for name, value in point.items() if name != "width"}
    operators, found = _cached_predictions(json.dumps(others), tuple(plans))
    return found | {"width": require_width(point["width"], operators)}


@lru_cache(maxsize=CACHED_SCHEDULES)
def _cached_predictions(
    point: str, plans: tuple[bytes, ...]
) -> tuple[tuple[Operator, ...], dict[str, Any]]:
    """Return the predicted cycles of a point of a sweep, cached for all widths.

    Parameters
    ----------
    point : str
        The point without its width, as JSON.
    plans : tuple of bytes
        Contents of the schedule files.

    Returns
    -------
    operators : tuple of Operator
        Operators of the program, which limit the width.
    entries : dict
        The result of the step ``cycles``, without the width.
    """
    from ..simulation.simulate import predicted_entries

    program = _make_program(json.loads(point), plans)
    return program.operators, predicted_entries(program)


def _simulate_fabric(point: Point, fabric: Fabric) -> dict[str, Any]:
    """Simulate the default jobs of a fabric, and return the report of the simulation.

    A wrong word is an error. `point` has no effect: the fabric was already built for it.
    """
    from ..simulation.simulate import simulate

    report = simulate(fabric)
    if not report.passed:
        raise WorkFailed(
            f"The simulation gave {report.words_wrong} wrong words in {report.cycles} cycles, in "
            f"place of none in {report.predicted_cycles}"
        )
    facts: dict[str, Any] = report.to_json()
    return facts


def _synthesize_fabric(point: Point, fabric: Fabric) -> dict[str, Any]:
    """Synthesize a fabric for the device that `point` names; return the report as a dict.

    It also has ``algorithm``, the algorithms of the modes.
    """
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


#: Two functions for each step. The first makes a schedule, program or fabric; an `InputError` of
#: the first is a misfit. The second measures the result of the first.
_STEPS: dict[str, tuple[Callable[..., Any], Callable[..., dict[str, Any]]]] = {
    "plan": (_make_schedules, _plan_facts),
    "cycles": (_predict_cycles, lambda point, found: found),
    "simulate": (_make_fabric, _simulate_fabric),
    "synth": (_make_fabric, _synthesize_fabric),
}


def failed_row(point: Point, reason: str) -> Row:
    """Return the row (entry of the results) with status ``failed`` for a point of a sweep.

    It is for a point that no worker could compute.

    Parameters
    ----------
    point : Point
        The point, a step with the value of each axis.
    reason : str
        Message of the error, for the entry ``reason``.
    """
    return {"key": point_key(point), **point, "status": "failed", "reason": reason}


def contents_or_failure(point: Point) -> tuple[list[bytes], None] | tuple[None, Row]:
    """Return the contents of the files of a point of a sweep.

    If a file is lost or has changed, the result is a row with the status ``failed`` instead.

    Returns
    -------
    contents : list of bytes or None
        Contents of the files, for the worker.
    row : Row or None
        The row of the failed point if a file cannot be read or has changed.
    """
    try:
        return file_contents(point), None
    except InputError as error:
        return None, failed_row(point, str(error))
