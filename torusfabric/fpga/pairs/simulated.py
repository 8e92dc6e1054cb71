"""Pairs between boards in Amaranth's simulator: what one sends comes to another some time later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value

from .links import PairLinks, Pins

__all__ = ["SimulatedPins", "pair_domain"]


def pair_domain(board: int) -> str:
    """The domain of what a board sends on pairs."""
    return f"pairs_{board}"


class SimulatedPins(Pins):
    """The wires of all pairs of a board, instead of pins.

    Parameters
    ----------
    links : PairLinks
        Of the board, whose pins these become.
    wires : dict
        What goes over the bundles of all boards, which is shared by them.
    late : sequence of int
        How many units later what is sent on each pair of a bundle comes.
    """

    def __init__(
        self,
        links: PairLinks,
        board: int,
        wires: dict[tuple[int, int], Signal],
        late: Sequence[int],
    ) -> None:
        self._units, self._ends, self._board = links.units, links.ends, board
        self._wires, self._late = wires, late
        links.pins = self

    def sending(self, bundle: int) -> str:
        """The same of all bundles."""
        return pair_domain(self._board)

    def receiving(self, bundle: int) -> str:
        """That of the board that sends."""
        return pair_domain(self._ends[bundle][0])

    def begin(self, m: Module, platform: Any) -> None:
        """Nothing: whoever simulates boards makes their domains, and drives the clocks."""

    def attach(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Delay what the other board sends."""
        m.d.comb += self._wire(self._board, bundle, len(sent)).eq(sent)
        came, gear = self._wire(*self._ends[bundle], len(sent)), self._units.gear * self._units.unit
        lines = []
        for pair in range(len(sent) // gear):
            line = Signal((self._late[pair] + 2) * self._units.unit + gear, name=f"line_{pair}")
            m.d[self.receiving(bundle)] += line.eq(Cat(line, came.word_select(pair, gear))[gear:])
            lines.append(line[-gear - self._late[pair] * self._units.unit :][:gear])
        return Cat(lines)

    def _wire(self, board: int, bundle: int, bits: int) -> Signal:
        """What goes over a bundle."""
        return self._wires.setdefault((board, bundle), Signal(bits, name=f"wire_{board}_{bundle}"))
