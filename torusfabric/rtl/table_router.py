"""The router of tables: a crossbar that is told what to select."""

from amaranth.hdl import Cat, Module, Signal

from .crossbar import crossbar_words
from .router import Switch

__all__ = ["TableRouter"]


class TableRouter(Switch):
    """Forwards words from in-ports, registers behind them, and local lanes to out-ports.

    Parameters
    ----------
    crossbar : Crossbar
        Its inputs are the in-ports, then the registers, then the lanes.
    delayed : sequence of int
        The in-ports with a register behind them.
    lanes : int
        Number of local lanes.
    width : int
        Bits of a word.

    Members
    -------
    select : In
        The select registers, a cycle before the words that they concern enter.
    enable : In(1)
        Whether words advance.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(lanes * width)
        A word from each local lane.
    tx : Out(ports * width)
        A word to each out-port.
    """

    def __init__(self, crossbar, *, delayed, lanes, width):
        self._delayed = delayed
        told = max(crossbar.rom.shape[1], 1)
        super().__init__(crossbar, name="select", told=told, lanes=lanes, width=width)

    def elaborate(self, platform):
        m = Module()
        width = self._width
        # A copy of its own in every node keeps the fan-out of the select registers small.
        select = Signal(len(self.value("select")), reset_less=True)
        arriving = self.words("rx", width)
        later = [Signal(width, reset_less=True, name=f"rx_{port}_later") for port in self._delayed]
        words = arriving + later + self.words("inject", width)
        out = crossbar_words(m, self._crossbar, words, select, width, keep=self.alone)
        with m.If(self.value("enable")):
            m.d.sync += self.tx.eq(Cat(*out))
            m.d.sync += select.eq(self.value("select"))
            m.d.sync += [
                word.eq(arriving[port]) for port, word in zip(self._delayed, later, strict=True)
            ]
        return m
