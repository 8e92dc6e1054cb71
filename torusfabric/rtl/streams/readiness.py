"""The tree that finds out whether every node is ready for a run, and what messages are like."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..leaf import Leaf

__all__ = ["RADIX", "ReadinessMerge", "levels"]

#: Nodes, or branches, that a node of the tree combines.
RADIX = 4


def levels(nodes: int) -> int:
    """Levels of the tree, at least one.

    Examples
    --------
    >>> levels(2), levels(16), levels(17)
    (1, 2, 3)
    """
    count, nodes = 1, -(-nodes // RADIX)
    while nodes > 1:
        count, nodes = count + 1, -(-nodes // RADIX)
    return count


class ReadinessMerge(Leaf):
    """Combines what nodes, or branches of the tree, say; it shows it a cycle later.

    Parameters
    ----------
    inputs : int
    branches : bool
        Whether they are branches; else nodes, which have a message, and room, or not.
    length_bits : int
        Bits of the length of the messages; 0 where it is fixed.
    some : bool
        Whether some nodes send nothing.

    Members
    -------
    ready : In
    good : In
        Whether nothing is bad with each branch.
    bad : In
        Two bits of each.
    length : In
    sends : In
        Whether each has a length.
    all_ready : Out(1)
    any_bad : Out(2)
        Bit 0 is high as well where lengths differ.
    none_bad : Out(1)
        Whether `any_bad` is 0.
    any_length : Out
    any_sends : Out(1)
    """

    def __init__(self, inputs: int, length_bits: int, *, branches: bool, some: bool) -> None:
        self._branches = branches
        self._inputs, self._length_bits, self._some = inputs, length_bits, some
        bits = {"length": length_bits, "sends": min(int(some), length_bits)}
        super().__init__(
            {
                "ready": In(inputs if branches else 2 * inputs),
                **({"good": In(inputs)} if branches else {}),
                "bad": In(2 * inputs),
                "all_ready": Out(1),
                "any_bad": Out(2),
                "none_bad": Out(1),
            }
            | {name: In(inputs * width) for name, width in bits.items() if width}
            | {f"any_{name}": Out(width) for name, width in bits.items() if width}
        )
        # After a reset the control waits until all of these say what nodes say.
        self.all_ready = Signal(reset_less=True, name="all_ready")
        self.any_bad = Signal(2, reset_less=True, name="any_bad")
        self.none_bad = Signal(init=1, reset_less=True, name="none_bad")
        if length_bits:
            self.any_length = Signal(length_bits, reset_less=True, name="any_length")

    def elaborate(self, platform: object) -> Module:
        """Build the comparison, and the registers."""
        m = Module()
        bad = reduce(or_, self.words("bad", 2))
        # Known of branches, which spares a level of logic behind long wires.
        good = self.value("good").all() if self._branches else bad == 0
        m.d.sync += self.all_ready.eq(self.value("ready").all())
        if not self._length_bits:
            m.d.sync += [self.any_bad.eq(bad), self.none_bad.eq(good)]
            return m
        lengths = self.words("length", self._length_bits)
        if not self._some:
            differs = [length != lengths[0] for length in lengths[1:]]
            m.d.sync += self.any_length.eq(lengths[0])
        else:
            sends = self.words("sends", 1)
            chosen = Signal(self._length_bits, name="chosen")
            for sent, length in zip(reversed(sends), reversed(lengths), strict=True):
                with m.If(sent):
                    m.d.comb += chosen.eq(length)
            differs = [s & (n != chosen) for s, n in zip(sends, lengths, strict=True)]
            m.d.sync += [self.any_length.eq(chosen), self.any_sends.eq(reduce(or_, sends))]
        differ = reduce(or_, differs, Const(0))
        m.d.sync += [self.any_bad.eq(bad | differ), self.none_bad.eq(good & ~differ)]
        return m
