"""Command-line options of streams: for the ports of a fabric, a barrier, and simulations."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from ...contract.options import parse_non_negative_int
from ...errors import InputError
from ...toolchain.values import Choice, parse_number

__all__ = ["BARRIER", "Clocks", "MOST_STALL", "PORTS", "RUNS", "SETTINGS", "check_probability"]


class Clocks(Choice):
    """The option ``clocks``: node streams have the clock of the fabric, or one for each node."""

    #: The clock of the fabric.
    ONE = "one"
    #: An own clock for the streams of each node.
    PER_NODE = "per-node"


PORTS = """
--clocks: Clocks of the streams of nodes, for --top stream: one for all, or per-node for unrelated
    clocks. Default: one.
--timeout CYCLES: For --top stream, report a node that has not sent, or not taken what it received,
    this many cycles after no run is under way. Default: 0, never.
"""

BARRIER = """
--barrier: For --top stream and --max-flits, add a last mode in which every node sends a word, and
    receives one when all have sent.
"""

RUNS = """
--stall P: Probability that a port of --top stream pauses in a cycle, 0 to 0.95. Default: 0.
--faults P: Probability that a packet of a run of --top stream, or its command, is faulty, so that
    the fabric must drop it, 0 to 1. Default: 0.
"""

#: Largest probability that a port stalls in a cycle.
MOST_STALL = 0.95


def check_probability(name: str, value: object, most: float) -> float:
    """Check that a value is a probability from 0 to `most`, and return it.

    `name` is the name of the value, with which an error message begins.

    Raises
    ------
    InputError
        If the value is no number, or out of range.
    """
    share = parse_number(name, value)
    if not 0 <= share <= most:
        raise InputError(f"{name} must be from 0 to {most}, not {share:g}")
    return share


def _probability_reader(most: float) -> Callable[[str], float]:
    """Return a function by which argparse reads a probability from 0 to `most`.

    `most` is the largest allowed value. Error messages of the function lack the name of the option,
    because argparse adds it.
    """

    def parse_probability(text: str) -> float:
        try:
            return check_probability("", text, most)
        except InputError as error:
            raise ArgumentTypeError(str(error).strip()) from None

    return parse_probability


#: Readers, values and defaults of the options.
SETTINGS = {
    "clocks": {"choices": tuple(map(str, Clocks)), "default": str(Clocks.ONE)},
    "timeout": (parse_non_negative_int, 0),
    "stall": _probability_reader(MOST_STALL),
    "faults": _probability_reader(1),
}
