"""Choice of the schedules of a fabric, one for each mode, from the user's `FabricSpec`.

`torusfabric.fabric.make` and the commands that show or check plans call this module.

A *selection* is TOPOLOGY COLLECTIVE with options, or ``--plan FILE`` in place of both. A collective
is written ``COLLECTIVE[@AXES][:ALGORITHM][!FAULTS]``. Collectives of one fabric are separated by
commas, as in ``allgather,alltoall:necklace,allreduce@0``; schedule files are too. Each of these
words becomes one *mode*. A user refers to a mode by its number, by the word that selected it, or by
the name of its collective.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ..analysis import volume
from ..collective import (
    KINDS_WITH_LENGTHS,
    SATURATING,
    SIGNED,
    Collective,
    Operator,
    common_longest,
    parse_collective,
    split_name,
    split_names,
)
from ..errors import InputError
from ..planning import FormChoice, PlanOptions, Selection, make_selection, plan_selection, resolve
from ..schedule import Schedule
from ..schedule.file import load
from ..toolchain.progress import progress_bar
from ..toolchain.reading import split_file_names
from ..topology import (
    Topology,
    equal_links_as_text,
    parse_topology,
    shared_network,
    with_rates,
)

if TYPE_CHECKING:
    from ..adapters.loading.room import Room
    from .spec import FabricSpec

__all__ = ["ModeChoice", "PlanPurpose", "choose_mode", "choose_schedules", "split_modes",
           "operators_of_spec", "schedule_path", "parse_selection"]  # fmt: skip

#: Largest number of modes. Lists that are longer are refused before anything is planned.
MOST_MODES = 1024


@dataclass(frozen=True)
class ModeChoice:
    """The schedule of one mode, and the selection from which the schedule was planned.

    Parameters
    ----------
    schedule : Schedule
        The only schedule of the mode; with several forms, the one for the longest messages.
    name : str
        Path of the schedule file, or name of the collective.
    selection : Selection, optional
        Topology, collective, algorithm and options, all decided, so that planning them again gives
        the same schedule. If the mode has several forms, this is the selection of the user instead.
        None for a file.
    asked : Selection, optional
        The selection of the user, in which algorithm and options may be open. None for a file.
    root : {"any"} or None
        "any" if each run chooses the root.
    why : str
        Reason for the choice of the algorithm; empty if the user named the algorithm.
    forms : tuple of Schedule
        The forms of the mode, each for some message lengths; empty if one schedule serves every
        length.
    """

    schedule: Schedule
    name: str
    selection: Selection | None = None
    asked: Selection | None = None
    root: Literal["any"] | None = None
    why: str = ""
    forms: tuple[Schedule, ...] = ()

    @property
    def latency_steps(self) -> int | None:
        """Least steps from a block's arrival at a node until it may leave; None for a file."""
        return None if self.selection is None else self.selection.options.latency

    @property
    def schedules_to_compile(self) -> Schedule | tuple[Schedule, ...]:
        """All forms of the mode, or its only schedule: the argument of `torusfabric.compile`."""
        return self.forms or self.schedule


class PlanPurpose(NamedTuple):
    """The use of the schedules that are planned, such as the length of messages.

    If a user leaves the algorithm or an option open, it is decided by this use.

    Parameters
    ----------
    flits : int, optional
        Flits of a message. If the user left the algorithm open, the quickest for this length is
        chosen.
    any_length : bool
        True if each run chooses a length of 1 to `flits` flits.
    with_forms : bool
        True if messages of different lengths may have different schedules.
    any_root : bool
        True if the user may leave the root to each run (``--root any``). The schedule is then
        planned for root 0.
    room : Room, optional
        Sizes of the loadable tables of the existing fabric into which the schedules are to be
        loaded.
    planner : function of Selection -> Schedule, optional
        Planner to use in place of `torusfabric.planning.selection_schedule.plan_with_algorithm`.
    before : function of (Topology, Collective), optional
        Check that runs before a mode is planned, and raises `InputError` if the schedule could not
        serve the purpose. For example, the hardware would be too large.
    """

    flits: int | None = None
    any_length: bool = False
    with_forms: bool = False
    any_root: bool = False
    room: Room | None = None
    planner: Callable[[Selection], Schedule] | None = None
    before: Callable[[Topology, Collective], None] = lambda *_: None


def choose_schedules(spec: FabricSpec, purpose: PlanPurpose) -> tuple[ModeChoice, ...]:
    """Plan every mode of a fabric, or read its schedule files. The schedules are not checked here.

    Parameters
    ----------
    spec : FabricSpec
        The user's choices, with one or several collectives or files.
    purpose : PlanPurpose
        The use of the schedules, by which open choices are decided. With several modes,
        ``purpose.any_length`` counts as True: each run chooses its message length, unless messages
        of a mode have unequal lengths.

    Returns
    -------
    tuple of ModeChoice
        One for each mode, by the number of the mode.

    Raises
    ------
    InputError
        If a name is unknown, no algorithm fits, a file is invalid, modes have different
        topologies, or the memory of the machine is too small.
    """
    each = split_modes(spec)
    if len(each) > 1:
        # With messages of unequal lengths in a mode, all runs have the length of the longest one.
        # Loaded tables have runs of any length all the same.
        longest = 0 if spec.tables == "ram" else common_longest(map(longest_of_unequal, each))
        purpose = purpose._replace(any_length=not longest, flits=longest or purpose.flits)
    chosen = tuple(_choose_schedule(one, purpose) for one in each)
    shared_network(one.schedule.topology for one in chosen)
    return chosen


def choose_mode(spec: FabricSpec, mode: str | None, purpose: PlanPurpose) -> ModeChoice:
    """Plan one mode of a fabric, or read its schedule file. The schedule is not checked here.

    Parameters
    ----------
    spec : FabricSpec
        The user's choices, with one or several collectives or files.
    mode : str or None
        Number or name of the mode; None if the fabric has a single mode.
    purpose : PlanPurpose
        The use of the schedule, by which open choices are decided.

    Raises
    ------
    InputError
        If the fabric has several modes and `mode` is None, `mode` is unknown, or the mode cannot
        be planned.
    """
    each = split_modes(spec)
    # An incomplete `spec` names neither file nor collective. Then `_choose_schedule` raises the
    # error that says so, which helps the user more than an error about the mode.
    complete = spec.plan is not None or spec.collective is not None
    number = 0
    if len(each) > 1 or (mode is not None and complete):
        number = _mode_number(mode, [list(_mode_names(one)) for one in each])
    return _choose_schedule(each[number], purpose)


def split_modes(spec: FabricSpec) -> list[FabricSpec]:
    """Split the choices of a fabric into one `FabricSpec` for each mode.

    ``allgather,broadcast`` becomes two specifications with one collective each. The root is kept
    for collectives that have a root, such as a broadcast, and removed from the others.

    Parameters
    ----------
    spec : FabricSpec
        The choices, with one collective or schedule file for each mode.

    Raises
    ------
    InputError
        If there are more than `MOST_MODES` modes, ``--algorithm`` is given for several modes, or
        ``--root`` is given and no collective has a root.
    """
    name = "collective" if spec.plan is None else "plan"
    parts = split_names(spec.collective or "") if spec.plan is None else split_file_names(spec.plan)
    if len(parts) <= 1:
        return _give_traffic([spec])
    if len(parts) > MOST_MODES:
        raise InputError(
            f"Collectives of one fabric must be at most {MOST_MODES}, not {len(parts)}"
        )
    if spec.plan is None and spec.algorithm is not None:
        first = split_name(parts[0]).collective
        raise InputError(
            "--algorithm is for a single collective; of several, each names its own, for example "
            f"{first}:{spec.algorithm}"
        )
    if spec.plan is None and any("@" in part and "{" not in part for part in parts):
        spec = spec.replace(**equal_links_as_text(spec.topology, spec.link_latency))
    modes = _give_traffic([spec.replace(**{name: part}) for part in parts])
    if spec.root is None:
        return modes
    each = []
    for spec, part in zip(modes, parts, strict=True):
        if spec.plan is None:
            collective = _collective_of_name(spec, split_name(part).collective)
        else:
            collective = load(part).collective
        each.append(spec.replace(**{name: part, "root": spec.root if collective.rooted else None}))
    if all(one.root is None for one in each):
        raise InputError(
            f"--root {spec.root} has no meaning here, because none of these collectives has a "
            "root; leave it out"
        )
    return each


def longest_of_unequal(spec: FabricSpec) -> int:
    """Return the flits of the longest message of a mode if they are unequal, else 0."""
    if spec.plan is not None:
        return load(spec.plan).collective.fixed_flits or 0
    if spec.counts is None and not _is_pattern(spec.collective):
        return 0
    collective = parse_collective(
        split_name(spec.collective or "").collective,
        traffic=spec.traffic if _is_pattern(spec.collective) else None,
        counts=spec.counts,
        topology=_named_network(spec),
        root=0 if spec.root == "any" else spec.root,
    )
    return collective.longest_flits or 0


def _give_traffic(modes: list[FabricSpec]) -> list[FabricSpec]:
    """Return the modes of a fabric, each pattern with its own file of messages.

    ``--traffic`` names one file for all patterns, or one for each, joined by commas. ``--counts``
    does the same for collectives whose messages may be unequal.
    """
    names = [spec.collective or "" if spec.plan is None else "" for spec in modes]
    patterns = [number for number, name in enumerate(names) if _is_pattern(name)]
    if modes[0].traffic and not patterns and (modes[0].plan or modes[0].collective):
        raise InputError("--traffic is for the collective pattern; name it, or leave --traffic out")
    modes = _give_files(modes, "traffic", patterns, "patterns")
    if len(modes) == 1:
        return modes
    uneven = [
        number
        for number, name in enumerate(names)
        if name and split_name(name).collective.partition("@")[0] in KINDS_WITH_LENGTHS
    ]
    modes = _give_files(modes, "counts", uneven, "collectives that take counts")
    return [
        spec if number in uneven else spec.replace(counts=None) for number, spec in enumerate(modes)
    ]


def _give_files(
    modes: list[FabricSpec], option: str, numbers: list[int], noun: str
) -> list[FabricSpec]:
    """Return the modes of a fabric, of which those with `numbers` have a file of an option each.

    The user names one file for all, or one for each, joined by commas. `noun` stands for these
    modes in messages.
    """
    given = getattr(modes[0], option)
    files = split_file_names(given) if given else []
    if len(files) <= 1:
        return modes
    if len(files) != len(numbers):
        raise InputError(
            f"--{option} must name one file for all {noun} or one for each, {len(numbers)}, not "
            f"{len(files)}"
        )
    each = dict(zip(numbers, files, strict=True))
    return [spec.replace(**{option: each.get(number)}) for number, spec in enumerate(modes)]


def _mode_names(spec: FabricSpec) -> Iterator[str]:
    """Yield the two names of a mode: the word that selected it, and the name of its collective.

    For ``allgather:matching`` they are ``allgather:matching`` and ``allgather``; for a schedule
    file, the path and the collective. `spec` has the choices for this mode alone.
    """
    if spec.plan is not None:
        yield spec.plan
        yield load(spec.plan).collective.name
    else:
        yield spec.collective
        yield split_name(spec.collective).collective


def _mode_number(mode: str | None, names: list[list[str]]) -> int:
    """Return the number of the mode that the user means by `mode`, a number or a name.

    `names` has two names for each mode: the word that selected it, such as ``allgather:matching``,
    and its collective. `InputError` is raised if no mode, or more than one, has the name.
    """
    if mode is not None and re.fullmatch(r"[0-9]{1,9}", mode) and int(mode) < len(names):
        return int(mode)
    # The selecting word takes precedence. The name of a collective serves if only one mode has it.
    for place in (0, 1):
        found = [number for number, name in enumerate(names) if name[place] == mode]
        if len(found) == 1:
            return found[0]
    known = ", ".join(name[0] for name in names)
    numbers = f"0 to {len(names) - 1}" if len(names) > 1 else "0"
    if mode is None:
        raise InputError(
            f"This command shows one collective; choose it by --mode {numbers}, or by name: {known}"
        )
    raise InputError(f"--mode must be {numbers}, or one of {known}, not {mode!r}")


def _choose_schedule(spec: FabricSpec, purpose: PlanPurpose) -> ModeChoice:
    """Plan one mode, or read its schedule file.

    `spec` has the choices for this mode alone. If they leave the algorithm or options open,
    `purpose` decides them, such as the length of messages.
    """
    flits, any_length, any_root = purpose.flits, purpose.any_length, purpose.any_root
    path = schedule_path(spec, any_root=any_root)
    if spec.forms != "auto" and not (path is None and any_length and flits):
        raise InputError(
            "--forms chooses among schedules for different lengths, so it needs --max-flits and "
            "a collective to plan in place of --plan"
        )
    root: Literal["any"] | None = "any" if spec.root == "any" else None
    if path is not None:
        with progress_bar("reading"):
            schedule = load(path)
        if root:
            _check_open_root(schedule.collective)
        purpose.before(schedule.topology, schedule.collective)
        return ModeChoice(schedule, path, root=root)
    selection = asked = replace(parse_selection(spec, any_root=any_root), planner=purpose.planner)
    purpose.before(selection.topology, selection.collective)
    with progress_bar("planning"):
        if any_length and flits and (purpose.with_forms or spec.tables == "ram"):
            return _choose_forms(selection, flits, root, spec, purpose.room)
        if root:
            from ..planning import plan_any_root  # here, since it imports the compiler

            selection, schedule = plan_any_root(selection, flits=flits, any_length=any_length)
        else:
            selection = resolve(selection, flits=flits, any_length=any_length)
            schedule = plan_selection(selection)
    name = selection.collective.name
    return ModeChoice(schedule, name, selection, asked, root, selection.why)


def _choose_forms(
    selection: Selection,
    flits: int,
    root: Literal["any"] | None,
    spec: FabricSpec,
    room: Room | None,
) -> ModeChoice:
    """Plan the schedules (forms) of a mode for messages of 1 to `flits` flits.

    `selection` has the topology, the collective and the options of the mode, and `spec` all choices
    of the user for it. `root` is "any" if each run chooses the root. With ``--tables ram`` only
    schedules that fit loadable tables are considered; `room` has the sizes of these tables if the
    fabric exists already.
    """
    choice = FormChoice(spec.forms)
    if spec.tables == "ram":
        # Imported here, since it imports the compiler.
        from ..adapters.loading.choose import resolve_loadable

        operators = room.parsed_operators() if room else ()
        roots = selection.collective.groups(selection.topology).group_size if root else 1
        each = resolve_loadable(selection, flits, operators, room, roots=roots, forms=choice)
        several = len(each) > 1
    else:
        from ..planning import resolve_forms  # here, since it imports the compiler

        each = resolve_forms(selection, flits, root=root, forms=choice)
        # A single schedule is passed as a form, too, unless the user fixed algorithm or forms: then
        # `compile` chooses among the versions of the schedule, each quickest for some lengths.
        decided = choice in (FormChoice.SHORT, FormChoice.LONG)
        several = not (selection.algorithm or selection.costs or decided)
    schedules, last = tuple(map(plan_selection, each)), each[-1]
    again = last if len(each) == 1 else selection
    forms = schedules if several else ()
    name = selection.collective.name
    return ModeChoice(schedules[-1], name, again, selection, root, last.why, forms)


def schedule_path(spec: FabricSpec, *, any_root: bool = False, several: bool = False) -> str | None:
    """Return the path in ``--plan``, or None if the user gives topology and collective instead.

    Parameters
    ----------
    spec : FabricSpec
        The choices of the user.
    any_root : bool
        True if ``--root any`` may be combined with a file.
    several : bool
        True if the result may be several paths, separated by commas.

    Raises
    ------
    InputError
        If neither a file nor topology and collective are given, there are several files and
        `several` is False, or ``--root`` is combined with a file.
    """
    path: str | None = spec.plan
    if path is None:
        names = {"TOPOLOGY": spec.topology, "COLLECTIVE": spec.collective}
        missing = [name for name, value in names.items() if value is None]
        if missing:
            raise InputError(
                f"{' and '.join(missing)} must be given, for example 4x4 allgather, or --plan "
                "FILE in place of both"
            )
        return None
    if spec.root is not None and not (spec.root == "any" and any_root):
        raise InputError(
            "--root and --plan exclude each other, because the file holds a whole plan; leave "
            "--root out"
        )
    if "," in path and not several and not Path(path).exists():
        raise InputError(f"--plan must be one file for this command, not {path}")
    return path


def parse_selection(spec: FabricSpec, *, any_root: bool = False) -> Selection:
    """Return the selection of one mode: its topology, collective and options, as objects.

    Parameters
    ----------
    spec : FabricSpec
        The choices for this mode, with a collective in place of a schedule file.
    any_root : bool
        True if the root may be ``"any"``. The result then has root 0, because the schedules for
        other roots are translations of the schedule for node 0.

    Raises
    ------
    InputError
        If a name is unknown, or a number out of range.
    """
    topology = _named_network(spec)
    if len(split_names(spec.collective)) > 1:
        raise InputError(
            f"COLLECTIVE must be one collective for this command, not {spec.collective}"
        )
    named, root = split_name(spec.collective), spec.root
    if named.algorithm and spec.algorithm is not None:
        raise InputError(
            f"{spec.collective} and --algorithm {spec.algorithm} each name an algorithm; leave "
            "one of them out"
        )
    if root == "any":
        # A schedule for any root is planned for node 0; other roots are translations of it.
        _check_open_root(_collective_of_name(spec, named.collective))
        if not any_root:
            raise InputError(
                "Root any is for hardware, which takes a root at each start; for a single "
                "schedule give a node number"
            )
        root = 0
    names = ("ports", "chunks", "large", "seed", "latency", "duplex", "trees", "packets",
             "link_latency", "objective", "costs")  # fmt: skip
    files = [] if spec.broken_links is None else [Path(spec.broken_links)]
    options: dict[str, Any] = {name: getattr(spec, name) for name in names} | {
        "traffic": spec.traffic if _is_pattern(named.collective) else None,
        "counts": spec.counts,
        "broken_links": [*spec.broken_link, *files],
        "broken_nodes": spec.broken_node,
        "relays": spec.relay,
        "times": tuple(spec.times) if spec.times else None,
    }
    selection = make_selection(
        topology,
        spec.collective,
        algorithm=spec.algorithm,
        root=root,
        **cast(PlanOptions, options),
    )
    if spec.root == "any":
        selection.collective.check_supports_any_root(selection.topology)
    operators: tuple[Operator, ...] = ()
    if selection.collective.reducing and spec.op:
        operators = operators_of_spec(spec, [selection.collective])
    return replace(selection, beat=_choose_beat(spec, selection), operators=operators)


def _choose_beat(spec: FabricSpec, selection: Selection) -> int:
    """Return the beat for which to plan a mode: the flits of a word of a stream or host port.

    `spec` has the choices of the user, and `selection` the topology and the collective of the mode.
    """
    most = spec.max_flits or spec.flits
    if most is None or spec.width % 8:
        return 1
    if spec.beat == "auto" and spec.top == "stream":
        if spec.tables == "ram" and selection.collective.longest_flits:
            return (
                1  # Chunks that take one flit in turn fit any beat, and the beat is chosen later.
            )
        return volume.least_beat(selection.topology, selection.collective, most)
    if spec.max_flits is None:
        return 1
    # An invalid beat counts as 1 here. `Fabric` refuses it later, with a message.
    return spec.beat if isinstance(spec.beat, int) and 1 <= spec.beat <= most else 1


def _is_pattern(name: str | None) -> bool:
    """Return True if a user's name of a collective is that of a pattern."""
    return (name or "").strip().lower().startswith("pattern")


def _named_network(spec: FabricSpec) -> Topology:
    """Return the network that a mode names, with the rates of its links."""
    if spec.rate is None:
        return parse_topology(spec.topology)
    return with_rates(spec.topology, spec.rate)


def _collective_of_name(spec: FabricSpec, name: str) -> Collective:
    """Return the collective that a mode names, with the traffic of `spec` if it is a pattern."""
    traffic = spec.traffic if _is_pattern(name) else None
    # Only the names of nodes, in groups or in files of traffic, need the topology.
    topology = _named_network(spec) if "{" in name or traffic else None
    return parse_collective(name, traffic=traffic, topology=topology)


def _check_open_root(collective: Collective) -> None:
    """Check that a collective allows each run to choose its root; otherwise raise `InputError`.

    The collective must have a root, such as a broadcast, and its schedule must be planned for root
    0: schedules for all other roots are translations of that one.
    """
    if not collective.rooted:
        raise InputError(
            f"Root any needs a broadcast, scatter, gather or reduce, not {collective.kind}; leave "
            "the root out"
        )
    if collective.root:
        raise InputError(
            f"Root any needs a schedule from node 0, not from node {collective.root}; plan it "
            "with root 0"
        )


def operators_of_spec(spec: FabricSpec, collectives: Iterable[Collective]) -> tuple[Operator, ...]:
    """Return the operators of ``--op`` and ``--signed``; none if no mode is a reduction.

    Parameters
    ----------
    spec : FabricSpec
        The choices of the user.
    collectives : iterable of Collective
        The collective of each mode.

    Raises
    ------
    InputError
        If an operator is unknown, ``--signed`` is given for an operator without a signed one, or
        either option is given and no collective reduces.
    """
    kinds = {collective.kind: collective.reducing for collective in collectives}
    if not any(kinds.values()):
        for name in ("op", "signed"):
            if getattr(spec, name):
                raise InputError(
                    f"--{name} is for reductions (reduce, reduce-scatter, allreduce); leave it "
                    f"out for {', '.join(kinds)}"
                )
        return ()
    operators = tuple(map(Operator.parse, (spec.op or "add").split(",")))
    if spec.signed:
        for operator in operators:
            if not operator.signed and f"{operator.name}:signed" not in (*SIGNED, *SATURATING):
                raise InputError(
                    f"--signed needs --op min, --op max or --op add:saturating, not {operator}"
                )
        names = (operator.name.removesuffix(":signed") for operator in operators)
        operators = tuple(Operator.parse(f"{name}:signed") for name in names)
    return operators
