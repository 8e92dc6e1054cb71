"""How a user says what hardware to build, and the fabric that comes of it."""

import argparse
import shlex
from argparse import Namespace
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..analysis.facts import facts_together, schedule_facts
from ..collective import OPERATORS, SIGNED, Collective, Operator
from ..errors import InputError
from ..planning import compile, require_hardware
from .arguments import natural
from .output import progress_bar
from .selection import Chosen
from .several import choose_schedules, joined_words

__all__ = ["Made", "add_fabric_options", "add_flits_option", "make_fabric", "operators_of"]


#: What stands for a barrier among collectives.
BARRIER = "barrier"


class Made(NamedTuple):
    """A fabric, and what is known of it.

    Parameters
    ----------
    fabric : Fabric
    facts : dict
        What the check of the schedule found; of several, under ``modes``.
    chosen : tuple of Chosen
        The schedules, and how they were chosen.
    hardware : tuple of str
        The words on the command line that say what hardware to build.
    """

    fabric: Any
    facts: dict[str, Any]
    chosen: tuple[Chosen, ...]
    hardware: tuple[str, ...]

    def command_line(self, command: str, **others: object) -> str:
        """The command that makes the same again, in a fixed form."""
        words = ["torusfabric", command, *joined_words(self.chosen), *self.hardware]
        for name, value in others.items():
            words += [f"--{name}", str(value)]
        return shlex.join(words)


def add_fabric_options(
    parser: argparse.ArgumentParser, *, width: int = 32, any_length: bool = False
) -> None:
    """Add the arguments that say what hardware to build of a selection."""
    group = parser.add_argument_group("hardware")
    group.add_argument(
        "--width",
        metavar="W",
        type=natural,
        default=width,
        help=f"bits of a flit, 1 to 1024 (default {width})",
    )
    add_flits_option(group)
    if any_length:
        group.add_argument(
            "--max-flits",
            metavar="L",
            type=natural,
            help="in place of --flits: the length is chosen for each run, up to so many flits",
        )
        group.add_argument(
            "--periodic",
            action="store_true",
            help="begin again as long as the input run is high: results are read, and messages "
            "written and committed, meanwhile",
        )
        group.add_argument(
            "--barrier",
            action="store_true",
            help="with --top stream and --max-flits: a mode more, after all others, in which every "
            "node sends a word and receives one when all have come",
        )
    group.add_argument(
        "--op",
        metavar="NAME",
        help=f"how a reduction combines words: {', '.join(OPERATORS)} (default add), or "
        f"{' or '.join(SIGNED)} of two's complement"
        + "; several (add,max,max:signed) are chosen among for each run"
        * any_length,
    )
    group.add_argument(
        "--signed", action="store_true", help="min and max are min:signed and max:signed"
    )


def add_flits_option(group: Any) -> None:
    """Add the argument that says how long a message is."""
    group.add_argument(
        "--flits",
        metavar="L",
        type=natural,
        help="flits of a message (default one for each chunk)",
    )


def operators_of(arguments: Namespace, collective: Collective) -> tuple[Operator, ...]:
    """The operators that were asked for, or none for a collective without one.

    Raises
    ------
    InputError
        If there is no such operator, or it is of no use, or there are several for a command that
        makes no fabrics with choices.
    """
    if not collective.reducing:
        for name in ("op", "signed"):
            if getattr(arguments, name):
                raise InputError(
                    f"--{name} must be left out for {collective.kind}, which combines nothing "
                    "(reduce, reduce-scatter and allreduce do)"
                )
        return ()
    operators = tuple(map(Operator.parse, (arguments.op or "add").split(",")))
    if arguments.signed:
        for name in (operator.name for operator in operators):
            if name not in ("min", "max"):
                raise InputError(f"--signed must come with --op min or --op max, not with {name}")
        operators = tuple(replace(operator, signed=True) for operator in operators)
    if len(operators) > 1 and "max_flits" not in arguments:
        raise InputError(f"--op must be one operator for {arguments.command}, not {arguments.op}")
    return operators


def _with_barrier(arguments: Namespace) -> Namespace:
    """The arguments where a barrier among the collectives is an option.

    Raises
    ------
    InputError
        If there is no other collective.
    """
    names = (arguments.collective or "").split(",")
    if BARRIER not in names:
        return arguments
    others = [name for name in names if name != BARRIER]
    if not others:
        raise InputError("Barrier must be beside a collective, as in allgather,barrier, not alone")
    return Namespace(**vars(arguments) | {"collective": ",".join(others), "barrier": True})


def make_fabric(arguments: Namespace, *, any_root: bool = False) -> Made:
    """Plan, or read, then check and build what was selected.

    The fabric has the top, the bus and the prefix that the arguments name, if they do.

    Parameters
    ----------
    arguments : Namespace
        Of a parser to which `add_selection` and `add_fabric_options` added.
    any_root : bool
        Whether the root may be left open.

    Raises
    ------
    InputError
        If something is unknown, does not fit, or cannot be built.
    """
    from ..rtl import Fabric
    from ..rtl.fabric import check_prefix

    arguments = _with_barrier(arguments)
    top, prefix = getattr(arguments, "top", ""), getattr(arguments, "prefix", "")
    bus, periodic = getattr(arguments, "bus", None), getattr(arguments, "periodic", False)
    clocks = getattr(arguments, "clocks", "one")
    check_prefix(prefix)
    runs = getattr(arguments, "repeat", 0)
    lengths = {"flits": arguments.flits, "max_flits": getattr(arguments, "max_flits", None)}
    most = lengths["max_flits"] or arguments.flits
    before = partial(require_hardware, flits=most, runs=runs)
    any_length = lengths["max_flits"] is not None
    chosen = choose_schedules(
        arguments, any_root=any_root, flits=most, any_length=any_length, before=before
    )
    schedules = [one.schedule for one in chosen]
    reducing = [s.collective for s in schedules if s.collective.reducing]
    operators = operators_of(arguments, (reducing or [schedules[0].collective])[0])
    found = []
    for schedule in schedules:
        with progress_bar("checking") as progress:
            found.append(schedule_facts(schedule, progress))
    with progress_bar("compiling"):
        root = next((one.root for one in chosen if one.root), None)
        whole = schedules if len(schedules) > 1 else schedules[0]
        barrier = getattr(arguments, "barrier", False)
        program = compile(whole, **lengths, operators=operators, root=root, barrier=barrier)
        fabric = Fabric(
            program,
            width=arguments.width,
            top=top or "host",
            prefix=prefix,
            bus=bus,
            periodic=periodic,
            clocks=clocks,
        )
    facts = facts_together(found)
    hardware = ["--op", arguments.op] if arguments.op else []
    hardware += ["--signed"] * arguments.signed
    hardware += ["--width", str(fabric.width)]
    hardware += ["--max-flits" if program.any_length else "--flits", str(fabric.flits)]
    hardware += ["--top", top] if top else []
    hardware += ["--bus", bus] if bus else []
    hardware += ["--prefix", prefix] if prefix else []
    hardware += ["--periodic"] * periodic
    hardware += ["--barrier"] * barrier
    hardware += ["--clocks", clocks] if clocks != "one" else []
    return Made(fabric, facts, chosen, tuple(hardware))
