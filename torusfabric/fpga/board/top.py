# amaranth: UnusedElaboratable=no
"""The outermost module: the image between the pins of a board."""

from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import io

from .catalogue import Board

__all__ = ["BoardTop"]


class BoardTop(Elaboratable):
    """The image, with its serial line and lamps on the pins of a board.

    Parameters
    ----------
    image : Elaboratable
        An `Image`, or what has its pins.
    """

    def __init__(self, image: Any, board: Board) -> None:
        self._image, self._board = image, board

    def elaborate(self, platform: Any) -> Module:
        """Connect the image to the pins."""
        m = Module()
        m.submodules.image = image = self._image
        uart = platform.request(*self._board.uart, dir="-")
        m.submodules.rx_buffer = rx = io.Buffer("i", uart.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", uart.tx)
        m.d.comb += [image.rx.eq(rx.i), tx.o.eq(image.tx)]
        groups: dict[tuple[str, int], Any] = {}
        for lamp, (name, number, *part) in self._board.lamps.items():
            if (name, number) not in groups:
                groups[name, number] = platform.request(name, number, dir="-")
            group = groups[name, number]
            port = getattr(group, part[0]) if part else group
            m.submodules[f"{lamp}_buffer"] = buffer = io.Buffer("o", port)
            m.d.comb += buffer.o.eq(getattr(image, lamp))
        return m
