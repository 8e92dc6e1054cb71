"""A run as waves: the nets of the top, cycle by cycle, with words by their numbers."""

from __future__ import annotations

import io
from collections.abc import Iterator

from vcd import VCDWriter

from ..topology import IntArray
from .gates import Bit, GateText
from .machine import WORDS
from .symbols import named

__all__ = ["Recorder"]


class Recorder:
    """Records the nets of the top.

    Words are strings, ``word 12``, and of each only one bit is known; all else is 0, 1 or x.

    Parameters
    ----------
    number : dict of Bit to int
        Of each bit of the top, its place among the nets.
    width, position : int
        Bits of a word, and which of them is carried out.
    """

    def __init__(
        self, text: GateText, number: dict[Bit, int], *, width: int, position: int
    ) -> None:
        self._cycles: list[IntArray] = []
        carried = {
            bit
            for instance in text.instances.values()
            for port, bits in instance.pins.items()
            if port in WORDS
            for bit in bits
        }
        self._words: dict[str, int] = {}
        self._vectors: dict[str, list[int]] = {}
        for name, bits in text.nets.items():
            places = [number.get(bit, 2) for bit in bits]
            if bits and bits[0] in carried:
                for k, place in enumerate(places[position::width]):
                    self._words[f"{name}_{k}"] = place
            elif any(place > 2 for place in places):
                self._vectors[name] = places

    def record(self, nets: IntArray) -> None:
        """Record a cycle of the first run."""
        self._cycles.append(nets[:, 0].copy())

    def text(self) -> str:
        """The text of a VCD file; a cycle takes two units of time, and the last is the fault's."""
        stream = io.StringIO()
        with VCDWriter(stream, timescale="1 ns", date="") as writer:
            clock = writer.register_var("fabric", "clk", "wire", size=1)
            words = {n: writer.register_var("fabric", n, "string") for n in self._words}
            vectors = {
                n: writer.register_var("fabric", n, "wire", size=len(places))
                for n, places in self._vectors.items()
            }
            for cycle, nets in enumerate(self._cycles):
                writer.change(clock, 2 * cycle, 1)
                for name, value in self._shown(nets):
                    writer.change((words | vectors)[name], 2 * cycle, value)
                writer.change(clock, 2 * cycle + 1, 0)
        return stream.getvalue()

    def _shown(self, nets: IntArray) -> Iterator[tuple[str, str]]:
        """What each net shows."""
        for name, place in self._words.items():
            yield name, named(int(nets[place])).replace(" ", "_")
        for name, places in self._vectors.items():
            bits = (int(nets[place]) for place in reversed(places))
            yield name, "".join(str(bit) if bit in (0, 1) else "x" for bit in bits)
