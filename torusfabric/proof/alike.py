"""Proof that a module treats all bits of a word alike, by comparison of its gate structure.

The *slice* of a bit position consists of all gates, registers and memory bits that the output bits
at that position depend on. Two slices are compared by partition refinement. Every bit has a
*colour*. Gates of the same kind with operands of the same colours have the same colour. Registers
begin with one colour, and split as long as their inputs have different colours. If two slices end
with the same output colours, any result about one position holds for the other.

Why: symbolic runs then need to follow only one bit of each word.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TypeAlias

from .gates import Bit, GateModule, cone_of_influence
from .report import make_refutation

__all__ = ["check_alike"]

#: Number of a class of bits that no comparison has separated so far.
Colour: TypeAlias = int


def check_alike(
    module: GateModule, words: Collection[str], width: int, positions: Collection[int]
) -> int:
    """Check that a module treats some bit positions of words alike: that their gates are the same.

    All gates and registers that an output bit at one position depends on are compared with those of
    the first position. A statement that holds for the first position then holds for the others.

    Parameters
    ----------
    module : GateModule
        The module; it is compared with itself.
    words : collection of str
        Ports that carry words.
    width : int
        Bits of a word.
    positions : collection of int
        Positions within each word that must be alike.

    Returns
    -------
    int
        Number of comparisons of output bits.

    Raises
    ------
    Refuted
        If an output bit has another structure than the bit at the first position.
    """
    # ALIKE gates compare with bits of other classes. Whole runs check those, so here they are cut.
    gates = [gate._replace(b="0") if gate.kind == "ALIKE" else gate for gate in module.gates]
    module = replace(module, gates=gates)
    slices = [_BitSlice(module, words, width, position) for position in positions]
    known: dict[object, Colour] = {}
    before = 0
    while True:
        for each in slices:
            each.refine_colours(known)
        count = len({colour for each in slices for colour in each.kept.values()})
        if count == before:
            break
        before = count
    compared = 0
    for each in slices[1:]:
        for port, first, other in zip(each.ports, slices[0].shown, each.shown, strict=True):
            if first != other:
                message = (
                    f"Bit {each.position} of words of {port} of {module.name} must be as bit "
                    f"{slices[0].position} is"
                )
                raise make_refutation(module.name, port, message)
            compared += 1
    return compared


class _BitSlice:
    """All gates, registers and memory bits that the output bits at one position depend on.

    Two slices are compared by *colours*: numbers of bits, which are equal for bits that are
    computed in the same way from bits of equal colours.

    Attributes
    ----------
    ports : list of str
        Port of each output bit.
    kept : dict of object to Colour
        Colours of registers and memory bits. A key is the output bit of a register, or (number of a
        memory, position of a bit within its words).
    shown : list of Colour
        Colour of each output bit, in the order of `ports`.
    """

    def __init__(
        self, module: GateModule, words: Collection[str], width: int, position: int
    ) -> None:
        self.position = position
        outputs = [
            (port, bits[k])
            for port, bits in module.outputs.items()
            if port in words
            for k in range(position, len(bits) - len(bits) % width, width)
        ]
        self.ports = [port for port, _ in outputs]
        self._bits = [bit for _, bit in outputs]
        live = cone_of_influence(module, self._bits)
        self._module, self._live = module, live
        self._leaves = self._input_keys(words, width)
        self._flops = [flop for flop in module.flops if flop.q in live.bits]
        before = {bit: module.operands_of(bit) for bit in live.bits}
        self._order = [*TopologicalSorter(before).static_order()]
        self.kept: dict[object, Colour] = dict.fromkeys((flop.q for flop in self._flops), -1)
        self.kept |= {(n, k): -1 for n, bits in live.rams.items() for k in bits}
        self.shown: list[Colour] = []

    def _input_keys(self, words: Collection[str], width: int) -> dict[Bit, object]:
        """Return a dict: input bit of the module -> key; bits with equal keys are taken as equal.

        A bit of a word at the position of this slice has the key ``("word", port, number of the
        word)``, so that it equals the bit of the same word in a slice of another position. Any
        other bit has the key ``("bit", port, position)``. `words` are the input ports that take
        words, of `width` bits each.
        """
        found: dict[Bit, object] = {}
        for port, bits in self._module.inputs.items():
            for k, bit in enumerate(bits):
                word, position = divmod(k, width)
                here = port in words and position == self.position
                found[bit] = ("word", port, word) if here else ("bit", port, k)
        return found

    def refine_colours(self, known: dict[object, Colour]) -> None:
        """Compute new colours of all bits, given the present colours of registers and memories.

        A colour is a number. Bits get equal colours if they are computed in the same way from bits
        of equal colours. Repeated calls split colours, until two slices agree or differ for good.

        Parameters
        ----------
        known : dict of object to Colour
            Key -> colour. The key of a gate is its kind with the colours of its operands. The dict
            is shared by all slices, so that equal keys get equal colours; new keys are added.
        """
        number = lambda what: known.setdefault(what, len(known))
        of: dict[Bit, Colour] = {bit: number(bit) for bit in "01xz"}
        for bit in self._order:
            of[bit] = number(
                self._bit_key(bit, [of[each] for each in self._module.operands_of(bit)])
            )
        self.shown = [of[bit] for bit in self._bits]
        later: dict[object, Colour] = {}
        for flop in self._flops:
            later[flop.q] = number(("register", self.kept[flop.q], of[flop.d]))
        for ram, bits in self._live.rams.items():
            for k in bits:
                writes = tuple(
                    (*(of[bit] for bit in address), of[data[k]], of[enable[k]])
                    for address, data, enable in self._module.rams[ram].writes
                )
                later[ram, k] = number(("memory", self.kept[ram, k], writes))
        self.kept = later

    def _bit_key(self, bit: Bit, needs: list[Colour]) -> object:
        """Return the key of a bit, from which its colour is found: bits with equal keys are alike.

        `needs` are the colours of the bits that it is computed from. The key of a gate, for
        example, is its kind and these colours.
        """
        gate = self._module.gate_of.get(bit)
        if gate is not None:
            if gate.kind == "SUM" and gate.s != str(self.position):
                message = f"Operators of {self._module.name} must combine bits of one position"
                raise make_refutation(self._module.name, "result", message)
            return gate.kind, *needs
        if bit in self._module.read_of:
            number, _, k = self._module.read_of[bit]
            ram = self._module.rams[number]
            column = "" if ram.writes else ram.initial[::-1][k :: ram.width]
            return "read", ram.size, ram.collides, column, self.kept[number, k], *needs
        if bit in self.kept:
            return "held", self.kept[bit]
        return self._leaves.get(bit, bit)
