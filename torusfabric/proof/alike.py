"""That modules treat all bits of words alike, which is compared in the structure of gates.

What the bits of words at one position depend on is compared with what those at another do: gate by
gate, memory by memory, with registers told apart as far as what they are given tells them apart
(the coarsest stable partition, by refinement). Where both are of one form, whatever is found of
one position by carrying out gates is found of the other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TypeAlias

from .gates import Bit, GateModule, cone
from .report import refuted

__all__ = ["alike"]

#: What tells bits apart.
Colour: TypeAlias = int


def alike(
    module: GateModule, words: Collection[str], width: int, positions: Collection[int]
) -> int:
    """Check that a module treats some bits of words alike; returns how many are as the first is.

    Parameters
    ----------
    words : collection of str
        Its ports that bring or give away words.
    positions : collection of int
        The bits of each word.
    """
    # Bits of other classes are looked at in whole runs, and give nothing.
    gates = [gate._replace(b="0") if gate.kind == "ALIKE" else gate for gate in module.gates]
    module = replace(module, gates=gates)
    slices = [_Slice(module, words, width, position) for position in positions]
    known: dict[object, Colour] = {}
    before = 0
    while True:
        for each in slices:
            each.refine(known)
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
                raise refuted(module.name, port, message)
            compared += 1
    return compared


class _Slice:
    """The gates, registers and memories behind the bits of words at a position.

    Attributes
    ----------
    ports : list of str
        The output of each of these bits.
    kept : dict of object to Colour
        Of registers, and of memories and positions in them.
    shown : list of Colour
        Of the bits, by now.
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
        live = cone(module, self._bits)
        self._module, self._live = module, live
        self._leaves = self._inputs(words, width)
        self._flops = [flop for flop in module.flops if flop.q in live.bits]
        before = {bit: module.before(bit) for bit in live.bits}
        self._order = [*TopologicalSorter(before).static_order()]
        self.kept: dict[object, Colour] = dict.fromkeys((flop.q for flop in self._flops), -1)
        self.kept |= {(n, k): -1 for n, bits in live.rams.items() for k in bits}
        self.shown: list[Colour] = []

    def _inputs(self, words: Collection[str], width: int) -> dict[Bit, object]:
        """Return the form of each input: the word alone of a bit at this position."""
        found: dict[Bit, object] = {}
        for port, bits in self._module.inputs.items():
            for k, bit in enumerate(bits):
                word, position = divmod(k, width)
                here = port in words and position == self.position
                found[bit] = ("word", port, word) if here else ("bit", port, k)
        return found

    def refine(self, known: dict[object, Colour]) -> None:
        """Tell registers apart by what they are given, with numbers that all slices share."""
        number = lambda what: known.setdefault(what, len(known))
        of: dict[Bit, Colour] = {bit: number(bit) for bit in "01xz"}
        for bit in self._order:
            of[bit] = number(self._form(bit, [of[each] for each in self._module.before(bit)]))
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

    def _form(self, bit: Bit, needs: list[Colour]) -> object:
        """Return the form of a bit, given the colours of the bits before it."""
        gate = self._module.gate_of.get(bit)
        if gate is not None:
            if gate.kind == "SUM" and gate.s != str(self.position):
                message = f"Operators of {self._module.name} must combine bits of one position"
                raise refuted(self._module.name, "result", message)
            return gate.kind, *needs
        if bit in self._module.read_of:
            number, _, k = self._module.read_of[bit]
            ram = self._module.rams[number]
            column = "" if ram.writes else ram.initial[::-1][k :: ram.width]
            return "read", ram.size, ram.collides, column, self.kept[number, k], *needs
        if bit in self.kept:
            return "held", self.kept[bit]
        return self._leaves.get(bit, bit)
