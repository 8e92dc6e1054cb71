"""How a user says what hardware to build, and the fabric that comes of it."""

from ..analysis.facts import schedule_facts
from ..collective import OPERATORS, Operator
from ..errors import InputError
from ..program import compile_program, compile_rooted
from .output import progress_bar
from .selection import natural, parse_schedule

__all__ = ["add_fabric_options", "make_fabric", "operator_of"]


def add_fabric_options(parser, *, width=32):
    """Add the arguments that say what hardware to build of a selection."""
    group = parser.add_argument_group("hardware")
    group.add_argument(
        "--width",
        metavar="W",
        type=natural,
        default=width,
        help=f"bits of a flit, 1 to 1024 (default {width})",
    )
    group.add_argument(
        "--flits",
        metavar="L",
        type=natural,
        help="flits of a message (default one for each chunk)",
    )
    group.add_argument(
        "--op",
        metavar="NAME",
        help=f"how a reduction combines words: {', '.join(OPERATORS)} (default add)",
    )
    group.add_argument(
        "--signed", action="store_true", help="min and max compare words as two's complement"
    )


def operator_of(arguments, collective):
    """The operator that was asked for, or None for a collective without one.

    Raises
    ------
    InputError
        If there is no such operator, or it is of no use.
    """
    if not collective.reducing:
        for name in ("op", "signed"):
            if getattr(arguments, name):
                raise InputError(
                    f"--{name} must be left out for {collective.kind}, which combines nothing "
                    "(reduce, reduce-scatter and allreduce do)"
                )
        return None
    operator = Operator(arguments.op or "add", arguments.signed)
    if operator.signed and operator.name not in ("min", "max"):
        raise InputError(f"--signed must come with --op min or --op max, not with {operator.name}")
    return operator


def make_fabric(arguments, *, any_root=False, **settings):
    """Plan, check and build what was selected.

    Parameters
    ----------
    arguments : Namespace
        See `parse_schedule`.
    any_root : bool
        Whether the root may be left open.
    **settings
        Passed on to `build_fabric`.

    Returns
    -------
    fabric : Fabric
    facts : dict
        What the check found.
    """
    from ..rtl import build_fabric

    schedule = parse_schedule(arguments, any_root=any_root)
    operator = operator_of(arguments, schedule.collective)
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress)
    if arguments.root == "any":
        program = compile_rooted(schedule)
    else:
        program = compile_program(schedule, operator)
    fabric = build_fabric(program, width=arguments.width, flits=arguments.flits, **settings)
    return fabric, facts
