"""How a user says what to plan: the same in every command.

A selection is TOPOLOGY COLLECTIVE with options, or ``--plan FILE`` in place of all of them. A
collective is written ``COLLECTIVE[@AXES][:ALGORITHM][!FAULTS]``; several that make one fabric are
separated by commas, and so are files.
"""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from ..analysis import volume
from ..analysis.facts import schedule_facts
from ..analysis.link_use import link_use
from ..collective import Collective, parse_collective, split_name, split_names
from ..errors import InputError
from ..planning import FormChoice, PlanOptions, Selection, plan_selection, resolve, select
from ..schedule import Schedule
from ..schedule.file import load
from ..topology import Topology, parse_topology, require_alike
from .hardware_options import operators_of
from .output import progress_bar
from .selection_options import PLANNED

__all__ = ["Before", "Chosen", "checked_facts", "choose_schedule",
           "file_for_topology", "parse_plan", "parse_selection"]  # fmt: skip

#: On more arcs than this their use is not counted.
MOST_ARCS = 2**24


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
        Whether the root is chosen at the start of each run.
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


#: Refuses what cannot be done with a schedule later.
Before = Callable[[Topology, Collective], None]


def choose_schedule(
    arguments: Namespace,
    *,
    any_root: bool = False,
    flits: int | None = None,
    any_length: bool = False,
    before: Before = lambda *_: None,
) -> Chosen:
    """Plan what was selected, or read the schedule file; the schedule is not checked.

    Parameters
    ----------
    arguments : Namespace
        Of a parser to which `add_selection` added.
    any_root : bool
        Whether the root may be left open; the schedule is then for node 0.
    flits : int, optional
        Flits of a message, for which algorithm and latency are chosen if they are left open.
    any_length : bool
        Whether these are the most, and each run chooses.
    before : function of (Topology, Collective), optional
        Refuses, before anything is planned, what cannot be done with the schedule later.

    Raises
    ------
    InputError
        If a name is unknown, no algorithm fits, the file is not valid, or memory does not suffice.
    """
    path = parse_plan(arguments, any_root=any_root)
    given = vars(arguments)
    if given.get("forms", "auto") != "auto" and not (path is None and any_length and flits):
        raise InputError(
            "--forms must come with --max-flits and a collective to plan, for lengths of which "
            "each has its form"
        )
    root: Literal["any"] | None = "any" if arguments.root == "any" else None
    if path is not None:
        with progress_bar("reading"):
            schedule = load(path)
        if root:
            _check_open(schedule.collective)
        before(schedule.topology, schedule.collective)
        return Chosen(schedule, path, root=root)
    selection = asked = parse_selection(arguments, any_root=any_root)
    before(selection.topology, selection.collective)
    with progress_bar("planning"):
        if any_length and flits and ("forms" in given or given.get("tables") == "ram"):
            return _of_forms(selection, flits, root, arguments)
        if root:
            from ..planning import plan_any_root  # here, since it imports what compiles

            selection, schedule = plan_any_root(selection, flits=flits, any_length=any_length)
        else:
            selection = resolve(selection, flits=flits, any_length=any_length)
            schedule = plan_selection(selection)
    name = selection.collective.name
    return Chosen(schedule, name, selection, asked, root, selection.why)


def _of_forms(
    selection: Selection, flits: int, root: Literal["any"] | None, arguments: Namespace
) -> Chosen:
    """The forms of what is selected, for messages of up to so many flits.

    Where tables are loaded, they are by algorithms that can be.
    """
    given = vars(arguments)
    choice = FormChoice(given.get("forms", FormChoice.AUTO))
    if given.get("tables") == "ram":
        from ..planning.forms import resolve_loadable  # here, since it imports what compiles

        frame = given.get("frame")
        operators = frame.parsed_operators() if frame else ()
        roots = selection.collective.groups(selection.topology).size if root else 1
        each = resolve_loadable(selection, flits, operators, frame, roots=roots, forms=choice)
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


def file_for_topology(arguments: Namespace) -> None:
    """Take TOPOLOGY without COLLECTIVE for a schedule file, or several."""
    if arguments.plan is None and arguments.collective is None:
        arguments.plan, arguments.topology = arguments.topology, None


def parse_plan(
    arguments: Namespace, *, any_root: bool = False, several: bool = False
) -> str | None:
    """The schedule file that was given, or None for a topology and a collective.

    Where several are allowed they are joined by commas.

    Raises
    ------
    InputError
        If there is neither, or there are both, or options that only planning uses.
    """
    path: str | None = getattr(arguments, "plan", None)
    if path is None:
        names = {"TOPOLOGY": arguments.topology, "COLLECTIVE": arguments.collective}
        missing = [name for name, value in names.items() if value is None]
        if missing:
            raise InputError(
                f"{' and '.join(missing)} must be given, or --plan FILE in place of both "
                f"(see torusfabric {arguments.command} --help)"
            )
        return None
    for _, name in arguments.parser.given(arguments):
        if name in PLANNED and not (name == "--root" and arguments.root == "any" and any_root):
            raise InputError(f"{name} must be left out with --plan, whose file holds a whole plan")
    if "," in path and not several and not Path(path).exists():
        raise InputError(f"Plan must be one file for {arguments.command}, not {path}")
    return path


def parse_selection(arguments: Namespace, *, any_root: bool = False) -> Selection:
    """The topology, the collective and the options that were selected.

    Raises
    ------
    InputError
        If a name is unknown, or a number out of range.
    """
    topology = parse_topology(arguments.topology)
    collective, algorithm = _named(arguments)
    root = arguments.root
    if root == "any":
        # Node 0, for which a schedule for any root is planned.
        _check_open(parse_collective(split_name(collective).collective))
        if not any_root:
            raise InputError(f"Root must be a node number for {arguments.command}, not any")
        root = 0
    names = ("ports", "chunks", "large", "seed", "latency", "duplex", "trees", "packets",
             "link_latency")  # fmt: skip
    files = [] if arguments.broken_links is None else [arguments.broken_links]
    options = {name: getattr(arguments, name) for name in names} | {
        "broken_links": [*arguments.broken_link, *map(Path, files)],
        "broken_nodes": arguments.broken_node,
        "times": tuple(arguments.times) if arguments.times else None,
    }
    for name in ("objective", "costs"):
        if hasattr(arguments, name):  # of a command that plans by one algorithm
            options[name] = getattr(arguments, name)
    given = cast(PlanOptions, options)
    selection = select(topology, collective, algorithm=algorithm, root=root, **given)
    if arguments.root == "any":
        require_alike(selection.topology)
    beat = _beat(arguments, selection)
    if selection.collective.reducing and vars(arguments).get("op"):
        operators = operators_of(arguments, selection.collective)
        return replace(selection, beat=beat, operators=operators)
    return replace(selection, beat=beat)


def _beat(arguments: Namespace, selection: Selection) -> int:
    """The flits of a word of a port for which to plan, where these may be several."""
    given, most = vars(arguments), getattr(arguments, "max_flits", None)
    wanted = given.get("beat", 1)
    if most is None or arguments.width % 8:
        return 1
    if wanted == "auto" and given.get("top") == "stream":
        return volume.beat(selection.topology, selection.collective, most)
    # What is none is refused where the fabric is made.
    return wanted if isinstance(wanted, int) and 1 <= wanted <= most else 1


def _named(arguments: Namespace) -> tuple[str, str | None]:
    """The names of the collective, and of the algorithm if one is named."""
    if len(split_names(arguments.collective)) > 1:
        raise InputError(
            f"Collective must be one for {arguments.command}, not {arguments.collective}"
        )
    named = split_name(arguments.collective)
    algorithm = getattr(arguments, "algorithm", None)
    if named.algorithm and algorithm is not None:
        raise InputError(
            f"--algorithm must be left out for {arguments.collective}, not {algorithm}"
        )
    return arguments.collective, algorithm


def _check_open(collective: Collective) -> None:
    """Refuse a collective whose root cannot be left open."""
    if not collective.rooted:
        raise InputError(
            f"Root any must be for a broadcast, scatter, gather or reduce, not {collective.kind}"
        )
    if collective.root:
        raise InputError(f"Root any must be for a plan from node 0, not {collective.root}")


def checked_facts(schedule: Schedule, *, flits: int | None = None, why: str = "") -> dict[str, Any]:
    """Check a schedule, and measure it: as `schedule_facts`, with the use of links.

    Where these are not too many to count, and why its algorithm was chosen, if that is known.

    Raises
    ------
    ScheduleError
        If the schedule has a fault.
    """
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress, flits=flits)
    if schedule.topology.nodes * schedule.topology.ports <= MOST_ARCS:
        facts["links"] = link_use(schedule).to_json()
    return facts | ({"why": why} if why else {})
