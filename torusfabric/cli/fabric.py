"""How a user says what hardware to build, and the fabric that comes of it."""

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.facts import facts_together, schedule_facts
from ..collective import Operator, split_names
from ..errors import InputError
from ..planning import compile, require_hardware
from ..toolchain.quoting import shell_command
from ..topology import Topology, faults_within, shared_network
from .hardware_options import operators_of
from .output import progress_bar
from .selection import Chosen
from .several import choose_schedules
from .tables import frame_of, require_lengths

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..program import Mode

__all__ = ["Made", "make_fabric"]

#: What stands for a barrier among collectives.
BARRIER = "barrier"

#: Arguments of which a kept command has none: they say where files go and how a command works, or
#: have become part of the topology and of the choice of an algorithm.
NOT_KEPT = ("output", "force", "json", "quiet", "verbose", "minutes", "dry_run", "broken_link",
            "broken_links", "broken_node", "objective", "costs")  # fmt: skip


class Made(NamedTuple):
    """A fabric, and what is known of it.

    Parameters
    ----------
    facts : dict
        What the check of the schedule found; of several, under ``modes``.
    chosen : tuple of Chosen
        The schedules, and how they were chosen.
    arguments : Namespace
        Those that said what to make.
    system : System or None
        The fabric with the adapter that was asked for.
    """

    fabric: Any
    facts: dict[str, Any]
    chosen: tuple[Chosen, ...]
    arguments: Namespace
    system: "System | None" = None

    def command_line(self, command: str, **others: object) -> str:
        """The command that makes the same again: options as given, with every choice made.

        Other values may stand in place of those of arguments.
        """
        parser, decided = self.arguments.parser, dict.fromkeys(NOT_KEPT) | self._decided()
        words = parser.words(self.arguments, decided | others)
        return shell_command(["torusfabric", command, *words])

    def _decided(self) -> dict[str, object]:
        """What was decided, by the attributes of arguments."""
        first, *others = self.chosen
        given = vars(self.arguments)
        length = "flits" if given.get("max_flits") is None else "max_flits"
        decided = {"top": given.get("top"), "width": given["width"], length: self.fabric.flits}
        if first.selection is None:
            return decided
        network = shared_network(one.schedule.topology for one in self.chosen)
        slow = network.link_latency != 1
        decided |= {"topology": network, "link_latency": network.latency_text if slow else None}
        if others:
            names = (_in_full(one, network) for one in self.chosen)
            return decided | {"collective": ",".join(names)}
        selection, options = first.selection, first.selection.options
        algorithm, chosen = selection.algorithm, options.given()
        decided |= {"collective": first.name, "algorithm": algorithm and algorithm.name}
        decided |= {
            name: value if name in chosen else None for name, value in vars(options).items()
        }
        return decided | ({"latency": "auto"} if selection.any_latency else {})


def _in_full(one: Chosen, network: Topology) -> str:
    """A collective with its algorithm, if it has one for all lengths, and its own broken links.

    An algorithm that was chosen together with options, which others need not have, is left open.
    """
    again, asked = one.selection, one.asked
    assert again is not None
    assert asked is not None
    as_asked = again.options == asked.options and not asked.any_latency
    algorithm = again.algorithm if as_asked else asked.algorithm
    named = f":{algorithm.name}" if algorithm else ""
    return f"{one.name}{named}{faults_within(network, one.schedule.topology)}"


def make_fabric(arguments: Namespace, *, any_root: bool = False) -> Made:
    """Plan, or read, then check and build what was selected, perhaps with an open root.

    The fabric has the top, the bus and the prefix that the arguments name, if they do. They are of
    a parser to which `add_selection` and `add_fabric_options` added.

    Raises
    ------
    InputError
        If something is unknown, does not fit, or cannot be built.
    """
    from ..rtl.tops import check_prefix

    names = split_names(arguments.collective or "")
    if BARRIER in names:
        others = [name for name in names if name != BARRIER]
        if not others:
            raise InputError(
                "Barrier must be beside a collective, as in allgather,barrier, not alone"
            )
        given = vars(arguments) | {"collective": ",".join(others), "barrier": True}
        arguments = Namespace(**given)
    check_prefix(getattr(arguments, "prefix", ""))
    loaded = require_lengths(arguments)
    most = getattr(arguments, "max_flits", None)
    flits = most or arguments.flits
    # Each is refused before it is planned if its hardware would be too large.
    before = partial(require_hardware, flits=flits, runs=getattr(arguments, "repeat", 0))
    chosen = choose_schedules(
        arguments, any_root=any_root, flits=flits, any_length=most is not None, before=before
    )
    schedules = [one.schedule for one in chosen]
    reducing = [s.collective for s in schedules if s.collective.reducing]
    operators = operators_of(arguments, (reducing or [schedules[0].collective])[0])
    found = []
    for one in chosen:
        with progress_bar("checking") as progress:
            *_, facts = (
                schedule_facts(schedule, progress, operators, flits=flits)
                for schedule in one.forms or (one.schedule,)
            )
        found.append(facts | ({"why": one.why} if one.why else {}))
    with progress_bar("compiling"):
        fabric = _compiled(arguments, chosen, operators, loaded=loaded)
    found = [facts | _forms(mode) for facts, mode in zip(found, fabric.program.modes, strict=True)]
    return Made(fabric, facts_together(found), chosen, arguments)


def _forms(mode: "Mode") -> dict[str, Any]:
    """Of a mode with several forms, which serves from how many flits on for the first time."""
    if not mode.several:
        return {}
    schedules = {number: mode.at(number).schedule for number in mode.first_starts}
    return {
        "forms": [
            {
                "from": start,
                "algorithm": schedules[number].algorithm,
                "chunks": schedules[number].chunks,
                "rounds": schedules[number].round_count,
            }
            for number, start in mode.first_starts.items()
        ]
    }


def _compiled(
    arguments: Namespace,
    chosen: tuple[Chosen, ...],
    operators: tuple[Operator, ...],
    *,
    loaded: bool,
) -> Any:
    """The fabric of some schedules, with what the arguments say of it and the defaults else."""
    from ..rtl import Fabric

    given = vars(arguments)
    program = compile(
        [one.wanted for one in chosen]
        if len(chosen) > 1 or chosen[0].forms
        else chosen[0].schedule,
        flits=arguments.flits,
        max_flits=given.get("max_flits"),
        operators=operators,
        root=next((one.root for one in chosen if one.root), None),
        barrier=given.get("barrier", False),
    )
    ports = ("top", "prefix", "bus", "clocks", "beat", "timeout")
    how = {name: given[name] for name in ports if name in given}
    if loaded:
        how["tables"] = frame_of(arguments, program)
    return Fabric(program, width=arguments.width, **how)
