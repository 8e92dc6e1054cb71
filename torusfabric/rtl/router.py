"""The router: a crossbar with a register at each out-port, and a ROM of its settings."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from .crossbar import crossbar_words, plan_crossbar
from .memories import add_rom, choose
from .netlist import Leaf

__all__ = ["RoundRouter", "Router", "Switch"]

#: A ROM of more rows than this is read from a memory instead of being made of logic.
LOGIC_ROWS = 64


class Switch(Leaf):
    """A crossbar with a register at each out-port.

    Parameters
    ----------
    crossbar : Crossbar
    told : shape
        Of the input that tells what to select; 0 where there is nothing to select.
    name : str
        The name of that input.
    lanes : int
        Number of local lanes.
    width : int
        Bits of a word.
    """

    def __init__(self, crossbar, *, name, told, lanes, width):
        ports = len(crossbar.outputs)
        self._crossbar, self._width = crossbar, width
        super().__init__(
            ({name: In(told)} if told else {})
            | {
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


class RoundRouter(Switch):
    """Forwards words from in-ports and local lanes to out-ports, as its select registers say.

    One hop takes one cycle, and every out-port passes a word in every cycle. The select registers
    are those of a ROM beside it.

    Parameters
    ----------
    crossbar : Crossbar
    lanes : int
        Number of local lanes.
    width : int
        Bits of a word.
    """

    def __init__(self, crossbar, *, lanes, width):
        told = crossbar.rom.shape[1]
        super().__init__(crossbar, name="select", told=told, lanes=lanes, width=width)

    def elaborate(self, platform):
        m = Module()
        words = self.words("rx", self._width) + self.words("inject", self._width)
        select = self.value("select") if self._crossbar.kinds else Const(0, 0)
        out = crossbar_words(m, self._crossbar, words, select, self._width, keep=self.alone)
        with m.If(self.value("enable")):
            m.d.sync += self.tx.eq(Cat(*out))
        return m


class Router(Switch):
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
        told = range(max(len(select), 2))
        super().__init__(plan_crossbar(select), name="setting", told=told, lanes=lanes, width=width)

    @property
    def logic_bits(self):
        """Bits of settings that are made of logic, rather than read from a memory."""
        rows, columns = self._crossbar.rom.shape
        return 0 if rows > LOGIC_ROWS else rows * columns

    def elaborate(self, platform):
        m = Module()
        select = self._settings(m)
        words = self.words("rx", self._width) + self.words("inject", self._width)
        out = crossbar_words(m, self._crossbar, words, select, self._width, keep=self.alone)
        with m.If(self.value("enable")):
            m.d.sync += self.tx.eq(Cat(*out))
        return m

    def _settings(self, m):
        """The select registers."""
        rows, width = self._crossbar.rows, self._crossbar.rom.shape[1]
        if not width:
            return Const(0, 0)
        if len(rows) > LOGIC_ROWS:
            return add_rom(m, "rom", rows=rows, width=width, address=self.value("setting"))
        select = Signal(width, reset_less=True)
        m.d.sync += select.eq(choose([Const(row, width) for row in rows], self.value("setting")))
        return select
