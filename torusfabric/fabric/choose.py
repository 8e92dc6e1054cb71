"""From a `FabricSpec` to checked choices of schedules, one for each mode.

A selection is TOPOLOGY COLLECTIVE with options, or ``--plan FILE`` in place of all of them. A
collective is written ``COLLECTIVE[@AXES][:ALGORITHM][!FAULTS]``. Several that make one fabric are
separated by commas, ``allgather,alltoall:necklace,allreduce@0``, and so are files. Each is a mode.
A mode is named by its number, or by the word that selects it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ..analysis import volume
from ..collective import (
    SIGNED,
    Collective,
    Operator,
    parse_collective,
    split_name,
    split_names,
)
from ..errors import InputError
from ..planning import FormChoice, PlanOptions, Selection, plan_selection, resolve, select
from ..schedule import Schedule
from ..schedule.file import load
from ..toolchain.progress import progress_bar
from ..toolchain.reading import listed_files
from ..topology import Topology, alike_links, parse_topology, require_alike, shared_network

if TYPE_CHECKING:
    from ..adapters.loading.room import Room
    from .spec import FabricSpec

__all__ = ["Chosen", "PlanFor", "choose_mode", "choose_schedules", "each_selection", "operators_of",
           "parse_plan", "parse_selection"]  # fmt: skip

#: More collectives in one fabric are not worth a try.
MOST_MODES = 1024


@dataclass(frozen=True)
class Chosen:
    """A schedule, and how it was chosen.

    Parameters
    ----------
    name : str
        The file, or the collective.
    selection : Selection, optional
        What chooses it again, unless it is of a file.
    asked : Selection, optional
        What was selected, which leaves open what was chosen.
    root : {"any"} or None
        "any" if each run chooses the root.
    why : str
        Why its algorithm was chosen; empty where it was named.
    forms : tuple of Schedule
        Where several serve, each for some lengths: all of them, the last of which is `schedule`.
    """

    schedule: Schedule
    name: str
    selection: Selection | None = None
    asked: Selection | None = None
    root: Literal["any"] | None = None
    why: str = ""
    forms: tuple[Schedule, ...] = ()

    @property
    def latency(self) -> int | None:
        """Steps from the arrival of a block to its departure; None where a file does not say."""
        return None if self.selection is None else self.selection.options.latency

    @property
    def wanted(self) -> Schedule | tuple[Schedule, ...]:
        """What to compile."""
        return self.forms or self.schedule


class PlanFor(NamedTuple):
    """The purpose of schedules, which decides how they are chosen.

    Parameters
    ----------
    flits : int, optional
        Flits of a message, for which algorithm and latency are chosen if they are left open.
    any_length : bool
        True if each run chooses a length of up to `flits`.
    with_forms : bool
        True if messages of different lengths may have different schedules.
    any_root : bool
        True if the root may be left open; the schedule is then for node 0.
    room : Room, optional
        The limits of the existing fabric into which the schedules are to be loaded.
    planner : function of Selection -> Schedule, optional
        Plans in place of `torusfabric.planning.planned.plan_anew`.
    before : function of (Topology, Collective), optional
        Refuses, before anything is planned, a purpose that the schedule could not serve.
    """

    flits: int | None = None
    any_length: bool = False
    with_forms: bool = False
    any_root: bool = False
    room: Room | None = None
    planner: Callable[[Selection], Schedule] | None = None
    before: Callable[[Topology, Collective], None] = lambda *_: None


def choose_schedules(spec: FabricSpec, purpose: PlanFor) -> tuple[Chosen, ...]:
    """Plan every mode of a fabric, or read the schedule files; the schedules are not checked.

    Raises
    ------
    InputError
        If a name is unknown, no algorithm fits, a file is not valid, files are for different
        topologies, or memory does not suffice.
    """
    each = each_selection(spec)
    if len(each) > 1:
        purpose = purpose._replace(any_length=True)
    chosen = tuple(_choose_schedule(one, purpose) for one in each)
    shared_network(one.schedule.topology for one in chosen)
    return chosen


def choose_mode(spec: FabricSpec, mode: str | None, purpose: PlanFor) -> Chosen:
    """As `choose_schedules`, for one mode, which is named if there are several.

    Raises
    ------
    InputError
        If there are several modes and none is named, or there is none of that name.
    """
    each = each_selection(spec)
    # Of one that names neither a file nor a collective, choosing it says what to name.
    complete = spec.plan is not None or spec.collective is not None
    number = 0
    if len(each) > 1 or (mode is not None and complete):
        number = _mode_number(mode, [list(_names(one)) for one in each])
    return _choose_schedule(each[number], purpose)


def each_selection(spec: FabricSpec) -> list[FabricSpec]:
    """Return the choices for each mode; the root goes to the collectives that have one.

    Raises
    ------
    InputError
        If there is an algorithm for all, or a root and no collective that has one.
    """
    name = "collective" if spec.plan is None else "plan"
    parts = split_names(spec.collective or "") if spec.plan is None else listed_files(spec.plan)
    if len(parts) <= 1:
        return [spec]
    if len(parts) > MOST_MODES:
        raise InputError(
            f"Collectives of one fabric must be at most {MOST_MODES}, not {len(parts)}"
        )
    if spec.plan is None and spec.algorithm is not None:
        first = split_name(parts[0]).collective
        raise InputError(
            f"--algorithm must be left out for several collectives, not {spec.algorithm}: write "
            f"{first}:{spec.algorithm}"
        )
    if spec.plan is None and "@" in spec.collective:
        spec = spec.replace(**alike_links(spec.topology, spec.link_latency))
    if spec.root is None:
        return [spec.replace(**{name: part}) for part in parts]
    each = []
    for part in parts:
        if spec.plan is None:
            collective = parse_collective(split_name(part).collective)
        else:
            collective = load(part).collective
        each.append(spec.replace(**{name: part, "root": spec.root if collective.rooted else None}))
    if all(one.root is None for one in each):
        raise InputError(f"--root must be left out where no collective has a root, not {spec.root}")
    return each


def _names(spec: FabricSpec) -> Iterator[str]:
    """The names of a mode: the word that selects it, and the collective."""
    if spec.plan is not None:
        yield spec.plan
        yield load(spec.plan).collective.name
    else:
        yield spec.collective
        yield split_name(spec.collective).collective


def _mode_number(mode: str | None, names: list[list[str]]) -> int:
    """The number of the mode of some name."""
    if mode is not None and re.fullmatch(r"[0-9]{1,9}", mode) and int(mode) < len(names):
        return int(mode)
    # A word that selects one is sure, the name of its collective only if no other has it.
    for place in (0, 1):
        found = [number for number, name in enumerate(names) if name[place] == mode]
        if len(found) == 1:
            return found[0]
    known = ", ".join(name[0] for name in names)
    numbers = f"0 to {len(names) - 1}" if len(names) > 1 else "0"
    given = "left out (of several collectives one is shown)" if mode is None else repr(mode)
    raise InputError(f"--mode must be {numbers}, or one of {known}, not {given}")


def _choose_schedule(spec: FabricSpec, purpose: PlanFor) -> Chosen:
    """Plan one mode, or read its schedule file."""
    flits, any_length, any_root = purpose.flits, purpose.any_length, purpose.any_root
    path = parse_plan(spec, any_root=any_root)
    if spec.forms != "auto" and not (path is None and any_length and flits):
        raise InputError(
            "--forms must come with --max-flits and a collective to plan, for lengths of which "
            "each has its form"
        )
    root: Literal["any"] | None = "any" if spec.root == "any" else None
    if path is not None:
        with progress_bar("reading"):
            schedule = load(path)
        if root:
            _check_open(schedule.collective)
        purpose.before(schedule.topology, schedule.collective)
        return Chosen(schedule, path, root=root)
    selection = asked = replace(parse_selection(spec, any_root=any_root), planner=purpose.planner)
    purpose.before(selection.topology, selection.collective)
    with progress_bar("planning"):
        if any_length and flits and (purpose.with_forms or spec.tables == "ram"):
            return _choose_forms(selection, flits, root, spec, purpose.room)
        if root:
            from ..planning import plan_any_root  # here, since it imports what compiles

            selection, schedule = plan_any_root(selection, flits=flits, any_length=any_length)
        else:
            selection = resolve(selection, flits=flits, any_length=any_length)
            schedule = plan_selection(selection)
    name = selection.collective.name
    return Chosen(schedule, name, selection, asked, root, selection.why)


def _choose_forms(
    selection: Selection,
    flits: int,
    root: Literal["any"] | None,
    spec: FabricSpec,
    room: Room | None,
) -> Chosen:
    """Choose the forms of a mode, for messages of up to so many flits.

    Where tables are loaded, the forms are by algorithms that can be loaded.
    """
    choice = FormChoice(spec.forms)
    if spec.tables == "ram":
        from ..adapters.loading.choose import resolve_loadable  # it imports what compiles

        operators = room.parsed_operators() if room else ()
        roots = selection.collective.groups(selection.topology).size if root else 1
        each = resolve_loadable(selection, flits, operators, room, roots=roots, forms=choice)
        several = len(each) > 1
    else:
        from ..planning import resolve_forms  # here, since it imports what compiles

        each = resolve_forms(selection, flits, root=root, forms=choice)
        # Of a single schedule there may be several versions, too.
        decided = choice in (FormChoice.SHORT, FormChoice.LONG)
        several = not (selection.algorithm or selection.costs or decided)
    schedules, last = tuple(map(plan_selection, each)), each[-1]
    again = last if len(each) == 1 else selection
    forms = schedules if several else ()
    name = selection.collective.name
    return Chosen(schedules[-1], name, again, selection, root, last.why, forms)


def parse_plan(spec: FabricSpec, *, any_root: bool = False, several: bool = False) -> str | None:
    """Return the schedule file that was given, or None for a topology and a collective.

    Where several are allowed they are joined by commas.

    Raises
    ------
    InputError
        If there is neither a file nor a collective, there are several files, or a root.
    """
    path: str | None = spec.plan
    if path is None:
        names = {"TOPOLOGY": spec.topology, "COLLECTIVE": spec.collective}
        missing = [name for name, value in names.items() if value is None]
        if missing:
            raise InputError(
                f"{' and '.join(missing)} must be given, or --plan FILE in place of both"
            )
        return None
    if spec.root is not None and not (spec.root == "any" and any_root):
        raise InputError("--root must be left out with --plan, whose file holds a whole plan")
    if "," in path and not several and not Path(path).exists():
        raise InputError(f"Plan must be one file here, not {path}")
    return path


def parse_selection(spec: FabricSpec, *, any_root: bool = False) -> Selection:
    """Return the topology, the collective and the options of one mode.

    Raises
    ------
    InputError
        If a name is unknown, or a number out of range.
    """
    topology = parse_topology(spec.topology)
    if len(split_names(spec.collective)) > 1:
        raise InputError(f"Collective must be one here, not {spec.collective}")
    named, root = split_name(spec.collective), spec.root
    if named.algorithm and spec.algorithm is not None:
        raise InputError(
            f"--algorithm must be left out for {spec.collective}, not {spec.algorithm}"
        )
    if root == "any":
        # Node 0, for which a schedule for any root is planned.
        _check_open(parse_collective(named.collective))
        if not any_root:
            raise InputError("Root must be a node number for one schedule, not any")
        root = 0
    names = ("ports", "chunks", "large", "seed", "latency", "duplex", "trees", "packets",
             "link_latency", "objective", "costs")  # fmt: skip
    files = [] if spec.broken_links is None else [Path(spec.broken_links)]
    options: dict[str, Any] = {name: getattr(spec, name) for name in names} | {
        "broken_links": [*spec.broken_link, *files],
        "broken_nodes": spec.broken_node,
        "times": tuple(spec.times) if spec.times else None,
    }
    selection = select(
        topology,
        spec.collective,
        algorithm=spec.algorithm,
        root=root,
        **cast(PlanOptions, options),
    )
    if spec.root == "any":
        require_alike(selection.topology)
    operators: tuple[Operator, ...] = ()
    if selection.collective.reducing and spec.op:
        operators = operators_of(spec, selection.collective)
    return replace(selection, beat=_beat(spec, selection), operators=operators)


def _beat(spec: FabricSpec, selection: Selection) -> int:
    """The flits of a word of a port for which to plan, where these may be several."""
    most = spec.max_flits or spec.flits
    if most is None or spec.width % 8:
        return 1
    if spec.beat == "auto" and spec.top == "stream":
        return volume.beat(selection.topology, selection.collective, most)
    if spec.max_flits is None:
        return 1
    # What is none is refused where the fabric is made.
    return spec.beat if isinstance(spec.beat, int) and 1 <= spec.beat <= most else 1


def _check_open(collective: Collective) -> None:
    """Refuse a collective whose root cannot be left open."""
    if not collective.rooted:
        raise InputError(
            f"Root any must be for a broadcast, scatter, gather or reduce, not {collective.kind}"
        )
    if collective.root:
        raise InputError(f"Root any must be for a plan from node 0, not {collective.root}")


def operators_of(spec: FabricSpec, collective: Collective) -> tuple[Operator, ...]:
    """Return the operators that were asked for, or none for a collective without one.

    Raises
    ------
    InputError
        If there is no such operator, or it is of no use.
    """
    if not collective.reducing:
        for name in ("op", "signed"):
            if getattr(spec, name):
                raise InputError(
                    f"--{name} must be left out for {collective.kind}, which combines nothing "
                    "(reduce, reduce-scatter and allreduce do)"
                )
        return ()
    operators = tuple(map(Operator.parse, (spec.op or "add").split(",")))
    if spec.signed:
        for operator in operators:
            if not operator.signed and f"{operator.name}:signed" not in SIGNED:
                raise InputError(
                    f"--signed must come with --op min or --op max, not with {operator}"
                )
        names = (operator.name.removesuffix(":signed") for operator in operators)
        operators = tuple(Operator.parse(f"{name}:signed") for name in names)
    return operators
