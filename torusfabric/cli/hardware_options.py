"""The options that say what hardware to build, and the words that say it again."""

import argparse
from argparse import Namespace
from typing import Any

from ..collective import OPERATORS, SIGNED, Collective, Operator
from ..errors import InputError
from ..planning.selection import FormChoice
from .arguments import add_options, lengths, natural, positive_or_auto

__all__ = ["add_bus_option", "add_fabric_options", "add_flits_option", "add_ram_option",
           "add_top_options", "operators_of"]  # fmt: skip


#: The tops of a fabric, and how one meets it.
TOPS = {
    "host": "behind one memory-mapped port",
    "core": "with ports for each node",
    "stream": "with a stream each way at each node",
}


def add_fabric_options(parser: argparse.ArgumentParser, *, compared: bool = False) -> None:
    """Add the arguments that say what hardware to build of a selection, or to compare."""
    group = parser.add_argument_group("hardware")
    text = "--width W: bits of a flit, 1 to 1024 (default 32)\n"
    add_options(group, text, width=(natural, 32))
    add_flits_option(group, ranges=compared)
    text = """
        --max-flits L: in place of --flits: the length is chosen for each run, up to so many flits
        """
    add_options(group, text, max_flits=natural)
    if not compared:
        add_options(
            group,
            """
            --forms: with --max-flits, of algorithms of which each is the best for some lengths,
                that for short messages alone, that for long ones, or all, chosen by the length of a
                run (default those that save 1 %% of the cycles for 20 %% more look-up tables; below
                64 flits one)
            --barrier: with --top stream and --max-flits: a mode more, after all others, in which
                every node sends a word and receives one when all have come
            """,
            forms={"choices": tuple(map(str, FormChoice)), "default": str(FormChoice.AUTO)},
        )
    text = f"""
        --op NAME: how a reduction combines words: {", ".join(OPERATORS)} (default add), or
            {" or ".join(SIGNED)} of two's complement; several (add,max,max:signed) are chosen among
            for each run
        --signed: min and max are min:signed and max:signed
        """
    add_options(group, text)


def add_flits_option(group: Any, *, ranges: bool = False) -> None:
    """Add the argument that says how long a message is; it may also be a range."""
    more = "; A:B or A,B,.. compares cycles over a range or a list of lengths" * ranges
    text = f"--flits L: flits of a message (default one for each chunk){more}\n"
    add_options(group, text, flits=lengths if ranges else natural)


def add_bus_option(parser: argparse.ArgumentParser) -> None:
    """Add the argument that puts a fabric behind a bus."""
    text = "--bus: put the host port behind a bus: registers, and windows onto the memories\n"
    group = parser.add_argument_group("ports")
    add_options(group, text, bus={"choices": ("wishbone", "axi-lite", "axi4")})


def add_ram_option(parser: argparse.ArgumentParser, *, default: str | None, otherwise: str) -> None:
    """Add the argument that says what memories are made of, and what they are by default."""
    text = f"""
        --ram RULE: what memories of nodes are made of: STYLE[:DEPTH[xWIDTH]],.. of registers,
            distributed, block, ultra or auto, the first that is deep and wide enough (default
            {otherwise})
        """
    add_options(parser.add_argument_group("hardware"), text, ram={"default": default})


def add_top_options(parser: argparse.ArgumentParser, *tops: str) -> None:
    """Add the arguments that say how one meets the fabric, in some of `TOPS`, first the default."""
    group = parser.add_argument_group("ports")
    ways = "; ".join(f"{top}: {TOPS[top]}" for top in tops)
    add_options(
        group,
        f"""
        --top: {ways} (default {tops[0]})
        --clocks: with --top stream, give the streams of each node a clock of their own, unrelated
            to all others (default one for all)
        --beat R: flits of a word of the streams of nodes, of the host port and the bus, or of the
            ports of a core with memories: a power of two up to the flits of a message, of whole
            bytes, that fits the memories of the algorithm (docs/reference/streams.md#beats); or
            auto, the least with which streams do not limit the runs, else 1 (default auto)
        --timeout CYCLES: with --top stream, name a node that has not sent, or not taken what it
            received, so many cycles after no run is under way (default never)
        """,
        top={"choices": tops, "default": tops[0]},
        clocks={"choices": ("one", "per-node"), "default": "one"},
        beat=(positive_or_auto, "auto"),
        timeout=(natural, 0),
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
        for operator in operators:
            if not operator.signed and f"{operator.name}:signed" not in SIGNED:
                raise InputError(
                    f"--signed must come with --op min or --op max, not with {operator}"
                )
        names = (operator.name.removesuffix(":signed") for operator in operators)
        operators = tuple(Operator.parse(f"{name}:signed") for name in names)
    if len(operators) > 1 and "max_flits" not in arguments:
        raise InputError(f"--op must be one operator for {arguments.command}, not {arguments.op}")
    return operators
