"""Command-line options of streams: for the ports of a fabric, a barrier, and simulations."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from ...contract.options import natural
from ...errors import InputError
from ...toolchain.values import Choice, real

__all__ = ["BARRIER", "Clocks", "MOST_STALL", "PORTS", "RUNS", "SETTINGS", "check_share"]


class Clocks(Choice):
    """The clocks of the streams of nodes."""

    #: The clock of the fabric.
    ONE = "one"
    #: An own clock for the streams of each node.
    PER_NODE = "per-node"


PORTS = """
--clocks: with --top stream, give the streams of each node a clock of their own, unrelated to all
    others (default one for all)
--timeout CYCLES: with --top stream, name a node that has not sent, or not taken what it received,
    so many cycles after no run is under way (default never)
"""

BARRIER = """
--barrier: with --top stream and --max-flits: a mode more, after all others, in which every node
    sends a word and receives one when all have come
"""

RUNS = """
--stall P: of --top stream: how likely it is that a port rests in a cycle, 0 to 0.95 (default 0)
--faults P: of --top stream: the probability that a packet of a run, or its command, is invalid, so
    that the fabric must drop it, 0 to 1 (default 0)
"""

#: Largest probability that a port pauses in a cycle.
MOST_STALL = 0.95


def check_share(name: str, value: object, most: float) -> float:
    """Return a probability, checked to be from 0 to `most`.

    Raises
    ------
    InputError
        If the value is no number, or out of range.
    """
    share = real(name, value)
    if not 0 <= share <= most:
        raise InputError(f"{name} must be from 0 to {most}, not {share:g}")
    return share


def _reader(most: float) -> Callable[[str], float]:
    """Return an argparse type for a probability; argparse itself adds the name of the option."""

    def share(text: str) -> float:
        try:
            return check_share("", text, most)
        except InputError as error:
            raise ArgumentTypeError(str(error).strip()) from None

    return share


#: Readers, values and defaults of the options.
SETTINGS = {
    "clocks": {"choices": tuple(map(str, Clocks)), "default": str(Clocks.ONE)},
    "timeout": (natural, 0),
    "stall": _reader(MOST_STALL),
    "faults": _reader(1),
}
