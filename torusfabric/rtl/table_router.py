"""The router of tables: a crossbar that is told what to select."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from .crossbar import cascade, keeper
from .netlist import Leaf

__all__ = ["TableRouter"]


class TableRouter(Leaf):
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
        ports = len(crossbar.outputs)
        self._crossbar, self._delayed, self._width = crossbar, delayed, width
        super().__init__(
            {
                "select": In(max(crossbar.rom.shape[1], 1)),
                "enable": In(1),
                "rx": In(ports * width),
                "inject": In(max(lanes, 1) * width),
                "tx": Out(ports * width),
            }
        )
        self.tx = Signal(ports * width, reset_less=True)

    @property
    def crossbar(self):
        """The crossbar that is built."""
        return self._crossbar

    def elaborate(self, platform):
        m = Module()
        width = self._width
        # A copy of its own in every node keeps the fan-out of the select registers small.
        select = Signal(len(self.value("select")), reset_less=True)
        arriving = self.words("rx", width)
        later = [Signal(width, reset_less=True, name=f"rx_{port}_later") for port in self._delayed]
        words = arriving + later + self.words("inject", width)
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(m, width)] if self.alone else []
        out = []
        for output in self._crossbar.outputs:
            inputs = [words[source] for source in output.sources]
            bits = [select[bit] for bit in output.bits]
            out.append(cascade(inputs, bits, width, *keep) if inputs else Const(0, width))
        with m.If(self.value("enable")):
            m.d.sync += self.tx.eq(Cat(*(value[:width] for value in out)))
            m.d.sync += select.eq(self.value("select"))
            m.d.sync += [
                word.eq(arriving[port]) for port, word in zip(self._delayed, later, strict=True)
            ]
        return m
