"""The router: a crossbar with a register at each out-port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import LINK, SETTING
from .crossbar import Crossbar, crossbar_words, select_registers
from .netlist import Leaf
from .place import Location, columns_of
from .registers import apart

__all__ = ["Router"]

#: Cycles from a word at an input, with settings in the select registers, to the link.
HOP = 1

assert SETTING + HOP == LINK, "a router has one register"


class Router(Leaf):
    """Forwards words from in-ports, registers behind them, and injection ports to out-ports.

    One hop takes one cycle, and every out-port passes a word in every cycle. An out-port that
    always passes on the same input is made of wires and a register.

    Parameters
    ----------
    crossbar : Crossbar
        Its inputs are the in-ports, then the registers behind some of them, then injection ports.
    given : mapping of str to (sequence of Location), optional
        Where what it is given bit by bit lies, `select` for the select registers: by default in a
        column for each.
    row_bits : int
        Bits of a row of the node's table.
    delayed : sequence of int
        The in-ports with a register behind them.
    injections : int
        Number of injection ports.
    width : int
        Bits of a word.

    Members
    -------
    select : In
        What the sequencer gives, a cycle before the words that it concerns enter; if any.
    setting : In
        The node's table, a cycle before the words that it concerns enter; if any.
    enable : In(1)
        Whether words advance, a cycle before they do.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(injections * width)
        A word from each injection port, if any.
    tx : Out(ports * width)
        A word to each out-port.

    Examples
    --------
    Two out-ports: one always passes on the other in-port, one selects the injection port or in-port
    0.

    >>> import numpy as np
    >>> from torusfabric.rtl.crossbar import plan_crossbar
    >>> router = Router(plan_crossbar(np.array([[1, 2], [1, 0]])), injections=1, width=8)
    >>> sorted(router.signature.members), len(router.tx)
    (['enable', 'inject', 'rx', 'select', 'tx'], 16)
    """

    def __init__(
        self,
        crossbar: Crossbar,
        *,
        given: Mapping[str, Sequence[Location]] | None = None,
        row_bits: int = 0,
        delayed: Sequence[int] = (),
        injections: int = 0,
        width: int,
    ) -> None:
        ports = len(crossbar.outputs)
        registers = range(crossbar.rom.shape[1])
        self._crossbar = crossbar
        self._given = given or {"select": [Location(1, (0,), column=k) for k in registers]}
        self._columns = columns_of(self._given)
        self._delayed, self._injections, self._width = delayed, injections, width
        inputs = {
            "select": len(self._columns),
            "setting": row_bits,
            "inject": injections * width,
        }
        super().__init__(
            {name: In(bits) for name, bits in inputs.items() if bits}
            | {"enable": In(1), "rx": In(ports * width), "tx": Out(ports * width)}
        )
        self.tx = Signal(ports * width, reset_less=True, name="tx")

    @property
    def crossbar(self) -> Crossbar:
        """The crossbar that is built."""
        return self._crossbar

    def elaborate(self, platform: object) -> Module:
        """Build the crossbar, and a register behind each out-port."""
        m = Module()
        width = self._width
        arriving = self.words("rx", width)
        later = [Signal(width, reset_less=True, name=f"rx_{port}_d1") for port in self._delayed]
        words = arriving + later + (self.words("inject", width) if self._injections else [])
        outputs = self._crossbar.outputs
        selects = select_registers(m, outputs, self.given("select"), width, alone=self.alone)
        out = crossbar_words(m, self._crossbar, words, selects, width, alone=self.alone)
        with m.If(apart(m, self.value("enable"), name="enable_here", alone=self.alone)):
            m.d.sync += self.tx.eq(Cat(*out))
            m.d.sync += [
                word.eq(arriving[port]) for port, word in zip(self._delayed, later, strict=True)
            ]
        return m

    def given(self, name: str) -> list[Value]:
        """What it is given by a name, bit by bit, a cycle before it is to be in a register."""
        return [self._given_bit(at) for at in self._given[name]]

    def _given_bit(self, at: Location) -> Value:
        """A bit: of the sequencer, of the table, or of either."""
        bits: list[Value] = []
        if at.column is not None:
            bits.append(self._column(at.column))
        if at.start is not None:
            bit = self.value("setting")[at.start]
            bits.append(bit if at.strobe is None else bit & self._column(at.strobe))
        return reduce(or_, bits) if bits else Const(0)

    def _column(self, number: int) -> Value:
        """What a column of the sequencer shows."""
        return self.value("select")[self._columns.index(number)]
