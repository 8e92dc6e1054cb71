# amaranth: UnusedElaboratable=no
"""The outermost module: the gateware between the pins of a board."""

from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import io

from .catalogue import Board

__all__ = ["BoardTop"]


class BoardTop(Elaboratable):
    """The gateware, with its serial line and lamps on the pins of a board.

    Parameters
    ----------
    gateware : Elaboratable
        A `Gateware`, or what has its pins.
    """

    def __init__(self, gateware: Any, board: Board) -> None:
        self._gateware, self._board = gateware, board

    def elaborate(self, platform: Any) -> Module:
        """Connect it to the pins."""
        m = Module()
        # Place and route goes by the names of cells: another one here is another result.
        m.submodules.image = gateware = self._gateware
        uart = platform.request(*self._board.uart, dir="-")
        m.submodules.rx_buffer = rx = io.Buffer("i", uart.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", uart.tx)
        m.d.comb += [gateware.rx.eq(rx.i), tx.o.eq(gateware.tx)]
        groups: dict[tuple[str, int], Any] = {}
        for lamp, (name, number, *part) in self._board.lamps.items():
            if (name, number) not in groups:
                groups[name, number] = platform.request(name, number, dir="-")
            group = groups[name, number]
            port = getattr(group, part[0]) if part else group
            m.submodules[f"{lamp}_buffer"] = buffer = io.Buffer("o", port)
            m.d.comb += buffer.o.eq(getattr(gateware, lamp))
        return m
