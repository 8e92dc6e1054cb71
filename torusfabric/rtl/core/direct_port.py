"""The direct port of a program without memories: nodes are given the words that they send.

Every node has a word for each injection port, and shows the words at its in-ports. The sequencer
says which flit is sent, and when words arrive.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...program import Program
from ...program.fields import Order
from ...program.timing import ADDRESS, LINK
from ..memories import address_width
from .places import Columns

__all__ = ["DirectPort", "is_direct"]


def is_direct(program: Program) -> bool:
    """Return True if nodes have ports for the words that they send and receive, and no memories."""
    by_routes = program.form.receive_map.otherwise is not None
    return by_routes and program.loop.order is Order.FLIT


class DirectPort:
    """The direct port of all nodes.

    Attributes
    ----------
    width : int
        Bits of a word.
    flit_bits : int
        Bits of the number of a flit.
    arrival_bits : int
        Bits of a number that counts the rows of all flits.
    outside : dict of str to int
        The inputs of each node, with their bits: the words that it sends, side by side.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="hamiltonian"), flits=6)
    >>> port = DirectPort(program, width=8)
    >>> port.flit_bits, port.arrival_bits, port.outside
    (2, 4, {'inject': 16})
    """

    answer, shared = 0, False
    inputs: Mapping[str, int] = {}

    def __init__(self, program: Program, width: int) -> None:
        loop, self.width = program.loop, width
        self.flit_bits = address_width(loop.flits)
        self.arrival_bits = address_width(loop.rows * loop.flits)
        self.outside = {"inject": len(loop.sources.injections) * width}

    def reserve(self, columns: Columns) -> None:
        """Let the sequencer send the number of a flit, and a strobe for words that arrive.

        These come first in the nets `counters` and `valids`; no module of a node is given them.
        """
        columns.add_word((ADDRESS,), (1,))
        columns.add_valid((LINK,))
