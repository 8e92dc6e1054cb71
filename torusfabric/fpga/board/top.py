"""The outermost module: the image between the pins of a board."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import io

__all__ = ["BoardTop"]

#: A failure makes a single lamp change every 2^22 clock cycles: about three times a second.
BLINK = 23


class BoardTop(Elaboratable):
    """The image, with its serial line and lamps on the pins of a board.

    Parameters
    ----------
    image : SelfTest
    board : Board
    """

    def __init__(self, image, board):
        self._image, self._board = image, board

    def elaborate(self, platform):
        m = Module()
        m.submodules.image = image = self._image
        uart = platform.request(*self._board.uart, dir="-")
        m.submodules.rx_buffer = rx = io.Buffer("i", uart.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", uart.tx)
        m.d.comb += [image.rx.eq(rx.i), tx.o.eq(image.tx)]
        groups = {}
        for what, (name, number, *part) in self._board.lamps.items():
            if (name, number) not in groups:
                groups[name, number] = platform.request(name, number, dir="-")
            group = groups[name, number]
            port = getattr(group, part[0]) if part else group
            m.submodules[f"{what}_buffer"] = lamp = io.Buffer("o", port)
            m.d.comb += lamp.o.eq(self._lamp(m, what))
        return m

    def _lamp(self, m, what):
        image = self._image
        if what != "status":
            return getattr(image, what)
        blink = Signal(BLINK)
        m.d.sync += blink.eq(blink + 1)
        return image.passed | (image.failed & blink[-1])
