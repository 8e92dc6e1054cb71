"""The router: a crossbar with a register at each out-port, and a ROM of its settings."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from .crossbar import cascade, keeper, plan_crossbar
from .memories import choose
from .netlist import Leaf

__all__ = ["Router"]

#: A ROM of more rows than this is read from a memory instead of being made of logic.
LOGIC_ROWS = 64


class Router(Leaf):
    """Forwards words from in-ports and local lanes to out-ports.

    One hop takes one cycle, and every out-port passes a word in every cycle. A setting takes effect
    on the words that enter one cycle after it is given. With a single setting the crossbar is made
    of wires.

    Parameters
    ----------
    select : ndarray of int, shape (settings, ports)
        What feeds each out-port: an in-port, a lane counted from the number of ports, or negative
        where it does not matter.
    lanes : int
        Number of local lanes.
    width : int
        Bits of a word.

    Members
    -------
    setting : In
        The row of the ROM.
    enable : In(1)
        Whether words advance.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(lanes * width)
        A word from each local lane.
    tx : Out(ports * width)
        A word to each out-port.
    """

    def __init__(self, select, lanes, width):
        settings, ports = select.shape
        self._crossbar = plan_crossbar(select)
        self._width = width
        super().__init__(
            {
                "setting": In(range(max(settings, 2))),
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

    @property
    def logic_bits(self):
        """Bits of settings that are made of logic, rather than read from a memory."""
        rows, columns = self._crossbar.rom.shape
        return 0 if rows > LOGIC_ROWS else rows * columns

    def elaborate(self, platform):
        m = Module()
        select = self._settings(m)
        words = self.words("rx", self._width) + self.words("inject", self._width)
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(m, self._width)] if self.alone else []
        out = []
        for output in self._crossbar.outputs:
            inputs = [words[source] for source in output.sources]
            bits = [select[bit] for bit in output.bits]
            out.append(
                cascade(inputs, bits, self._width, *keep) if inputs else Const(0, self._width)
            )
        with m.If(self.value("enable")):
            m.d.sync += self.tx.eq(Cat(*(value[: self._width] for value in out)))
        return m

    def _settings(self, m):
        """The select registers."""
        rows, width = self._crossbar.rows, self._crossbar.rom.shape[1]
        if not width:
            return Const(0, 0)
        if len(rows) > LOGIC_ROWS:
            m.submodules.rom = rom = memory.Memory(shape=width, depth=len(rows), init=rows)
            port = rom.read_port()
            m.d.comb += port.addr.eq(self.value("setting"))
            return port.data
        select = Signal(width, reset_less=True)
        m.d.sync += select.eq(choose([Const(row, width) for row in rows], self.value("setting")))
        return select
