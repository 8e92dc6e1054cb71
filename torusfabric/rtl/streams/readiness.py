"""The tree that finds out whether every node is ready for a run, and what messages are like."""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..host import RADIX, merge_levels
from ..modules import Leaf
from ..netlist import Part, Parts, Role

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder

__all__ = ["ReadinessMerge", "add_tree", "levels"]


def levels(nodes: int) -> int:
    """Levels of the tree, at least one.

    Examples
    --------
    >>> levels(2), levels(16), levels(17)
    (1, 2, 3)
    """
    return max(len(merge_levels(nodes)), 1)


class ReadinessMerge(Leaf):
    """Combines what nodes, or branches of the tree, say; it shows it a cycle later.

    Parameters
    ----------
    branches : bool
        Whether its inputs are of branches; else of nodes, which have a message, and room, or not.
    length_bits : int
        Bits of the length of the messages; 0 where it is fixed.
    some, rests : bool
        Whether some nodes send nothing, where there is a length; and whether it matters that nodes
        have passed on all that runs have brought.

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
    rest : In
        Whether each has passed on everything.
    all_ready : Out(1)
    any_bad : Out(2)
        Bit 0 is high as well where lengths differ.
    none_bad : Out(1)
        Whether `any_bad` is 0.
    any_length : Out
    any_sends : Out(1)
    all_rest : Out(1)
    """

    def __init__(
        self, inputs: int, length_bits: int, *, branches: bool, some: bool, rests: bool = False
    ) -> None:
        self._length_bits, self._branches, self._some = length_bits, branches, some
        self._rests = rests
        super().__init__(
            {
                "ready": In(inputs if branches else 2 * inputs),
                "good": In(inputs * branches),
                "bad": In(2 * inputs),
                "length": In(inputs * length_bits),
                "sends": In(inputs * some),
                "rest": In(inputs * rests),
                "all_ready": Out(1),
                "any_bad": Out(2),
                "none_bad": Out(1),
                "any_length": Out(length_bits),
                "any_sends": Out(int(some)),
                "all_rest": Out(int(rests)),
            }
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
        if self._rests:
            m.d.sync += self.all_rest.eq(self.value("rest").all())
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


def add_tree(build: FabricBuilder, bits: int, *, some: bool, rests: bool = False) -> None:
    """Add the tree that brings what nodes say to the control.

    Parameters
    ----------
    bits : int
        Of the length of the messages.
    some, rests : bool
        As of `ReadinessMerge`.
    """
    widths = {"ready": 1, "bad": 2, "good": 1, "length": bits, "sends": int(some)}
    widths["rest"] = int(rests)
    widths = {name: width for name, width in widths.items() if width}
    shown = {"ready": "all_ready", "good": "none_bad", "rest": "all_rest"}
    of_node = {"bad": "bad", "length": "length", "sends": "counts", "rest": "rests"}
    words: list[dict[str, Parts]] = [
        {"ready": (Part(f"loaded_{node}", 0, 1), Part(f"free_{node}", 0, 1))}
        | {
            name: (Part(f"{net}_{node}", 0, widths[name]),)
            for name, net in of_node.items()
            if name in widths
        }
        for node in range(build.nodes)
    ]
    for level in range(levels(build.nodes)):
        groups = [words[start : start + RADIX] for start in range(0, len(words), RADIX)]
        words = []
        for number, group in enumerate(groups):
            module = f"readiness_{len(group)}" + ("" if level else "_of_nodes")
            make = partial(
                ReadinessMerge, len(group), bits, branches=level > 0, some=some, rests=rests
            )
            build.add_module(module, make, role=Role.STREAM)
            at = f"{level}_{number}"
            build.add(
                f"readiness_{at}",
                module,
                inputs={name: tuple(p for word in group for p in word[name]) for name in group[0]},
                outputs={shown.get(name, f"any_{name}"): (f"{name}_{at}", width)
                         for name, width in widths.items()},
            )  # fmt: skip
            words.append({name: build.whole(f"{name}_{at}") for name in widths})
