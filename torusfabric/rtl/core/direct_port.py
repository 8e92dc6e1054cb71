"""The direct port of a node: the port of a core whose program needs no memories.

Each node has an input for the word of each injection port (an input of the router for words of the
node itself), and shows the words at its in-ports. The sequencer sends two signals for the user of
the port: the number of the flit to send, and a strobe in the cycles in which words arrive.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...program import Program
from ...program.fields import Order
from ...program.timing import ADDRESS, LINK
from ..memories import address_width
from .places import SequencerSignals

__all__ = ["DirectPort", "is_direct"]


def is_direct(program: Program) -> bool:
    """Return True if a program needs no memories, so that its core has direct ports."""
    by_routes = program.form.receive_map.otherwise is not None
    return by_routes and program.loop.order is Order.FLIT


class DirectPort:
    """The signals at a node of a core without memories, which passes words directly to the user.

    Parameters
    ----------
    program : Program
        A program without memories, see `is_direct`.
    width : int
        Bits of a flit.

    Attributes
    ----------
    width : int
        Bits of a word.
    flit_bits : int
        Bits of the number of a flit.
    arrival_bits : int
        Bits of a counter of the cycles in which words arrive: one for each row and flit.
    outside : dict of str to int
        The inputs of each node with their widths: the words that it sends, side by side.

    Examples
    --------
    Each node sends two words of 8 bits per cycle. The 6 flits of a message are two chunks of 3
    flits, so that a flit number has 2 bits.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="hamiltonian"), flits=6)
    >>> port = DirectPort(program, width=8)
    >>> port.flit_bits, port.arrival_bits, port.outside
    (2, 4, {'inject': 16})
    """

    read_cycles, shared = 0, False
    inputs: Mapping[str, int] = {}

    def __init__(self, program: Program, width: int) -> None:
        loop, self.width = program.loop, width
        self.flit_bits = address_width(loop.flits)
        self.arrival_bits = address_width(loop.n_rows * loop.flits)
        self.outside = {"inject": len(loop.sources.injections) * width}

    def reserve_signals(self, columns: SequencerSignals) -> None:
        """Request two signals of the sequencer: the flit number, and a strobe for arriving words.

        They get the lowest bits of the nets ``counters`` and ``valids``. No module of a node reads
        them; they are for the user of the port.

        Parameters
        ----------
        columns : SequencerSignals
            The signals of the sequencer, still without word counters and strobes.
        """
        columns.add_word_counter((ADDRESS,), (1,))
        columns.add_strobe((LINK,))
