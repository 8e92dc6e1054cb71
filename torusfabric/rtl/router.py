"""The router: a crossbar with a register at each out-port.

A crossbar has only the inputs that its settings use, in the cheapest form: an out-port is a cascade
of its inputs, or several side by side (see `torusfabric.rtl.multiplexer`), which is faster. Where
these would take more tables than a full crossbar of cascades, that is built. What an idle out-port
carries does not matter, and select bits that may always be equal are one register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import LINK, SETTING
from ..topology import IntArray
from .modules import apart
from .multiplexer import branch_bits, branch_luts, lut_count, multiplexed, select_bits
from .netlist import Leaf
from .operator_unit import OperatorUnit
from .place import Delays, Location

__all__ = ["Crossbar", "Output", "Router", "plan_crossbar", "select_registers"]


#: Inputs from which on a cascade passes 0 where all its select bits are 0.
LEAST_TO_IDLE = 4


@dataclass(frozen=True)
class Output:
    """One out-port.

    Parameters
    ----------
    sources : tuple of int
        The inputs it can select: in-ports, and injection ports counted from their number on.
    bits : tuple of int
        The select register of each select bit, in the order of `code`.
    branched : bool
        Whether its cascade has branches.
    zero : bool
        Whether its last input is the word 0: that passes where all select bits are 0.
    """

    sources: tuple[int, ...]
    bits: tuple[int, ...]
    branched: bool = True
    zero: bool = False

    @property
    def words(self) -> tuple[int, ...]:
        """The inputs of its cascade."""
        return self.sources[: len(self.sources) - self.zero]

    def code(self, index: int) -> list[int]:
        """The select bits that make one of its inputs pass, by its place among them."""
        form, count = branch_bits if self.branched else select_bits, len(self.words)
        return [0] * len(form(count, 0)) if index == count else form(count, index)

    @property
    def luts(self) -> int:
        """4-input look-up tables for each bit of the width."""
        return (branch_luts if self.branched else lut_count)(len(self.words))


@dataclass(frozen=True, eq=False)
class Crossbar:
    """A crossbar, and the values of its select registers.

    Parameters
    ----------
    outputs : tuple of Output
        One for each out-port.
    rom : ndarray of int8, shape (settings, select registers)
        The value of each select register for each setting.
    delays : tuple of Delays
        Of each select register.
    """

    outputs: tuple[Output, ...]
    rom: IntArray
    delays: tuple[Delays, ...] = ()

    @property
    def luts_per_bit(self) -> int:
        """4-input look-up tables for each bit of the width, over all out-ports."""
        return sum(output.luts for output in self.outputs)


def plan_crossbar(
    select: IntArray,
    delays: Sequence[Delays] | None = None,
    late: Mapping[int, int] | None = None,
    *,
    branched: bool = False,
    zero: int | None = None,
) -> Crossbar:
    """The crossbar of a router class.

    Parameters
    ----------
    select : ndarray of int, shape (settings, ports)
        What feeds each out-port in each setting; negative where it does not matter.
    delays : sequence of Delays, optional
        Of each out-port; only those that change at once share select registers.
    late : mapping of int to int, optional
        Of inputs, how late they are (default 0). The latest come last, with the fewest tables
        behind them.
    branched : bool
        Whether all out-ports have branches, whatever these cost.
    zero : int, optional
        The input that is the word 0, if there is one: beside enough others it takes no tables.

    Examples
    --------
    Out-port 0 always passes on in-port 1 and is made of wires; out-port 1 selects.

    >>> crossbar = plan_crossbar(np.array([[1, 0], [1, 2]]))
    >>> [output.sources for output in crossbar.outputs], crossbar.rom.tolist()
    ([(1,), (0, 2)], [[0], [1]])
    >>> plan_crossbar(np.array([[1, 0], [1, 2]]), late={0: 1}).outputs[1].sources
    (2, 0)

    Four out-ports that select from all of eight words would take five tables a bit with branches.

    >>> plan_crossbar(np.arange(8)[:, None].repeat(4, axis=1)).luts_per_bit
    16
    """
    late = late or {}
    selected = [
        sorted({int(s) for s in column if s >= 0}, key=lambda s: (s == zero, late.get(s, 0), s))
        for column in select.T
    ]
    idles = [zero in sources and len(sources) > LEAST_TO_IDLE for sources in selected]
    counts = [len(sources) - idle for sources, idle in zip(selected, idles, strict=True)]
    others = {source for source in chain(*selected) if source >= len(selected)}
    registers: list[_Register] = []
    outputs = []
    for port, (sources, idle, cheap) in enumerate(
        zip(selected, idles, _branched(counts, len(others)), strict=True)
    ):
        planned = Output(tuple(sources), (), branched or cheap, idle)
        wanted = _codes(planned, select[:, port])
        delay = delays[port] if delays else (0,)
        bits = tuple(_share(registers, _Register(column, delay)) for column in wanted.T)
        outputs.append(replace(planned, bits=bits))
    rom = np.array([register.values for register in registers], np.int8).reshape(-1, len(select)).T
    return Crossbar(
        tuple(outputs), np.maximum(rom, 0), tuple(register.delay for register in registers)
    )


class _Register(NamedTuple):
    """A select register: its value in each setting, -1 where it does not matter, and its delay."""

    values: IntArray
    delay: Delays


def _codes(output: Output, selected: IntArray) -> IntArray:
    """The select bits of an out-port by setting, given what feeds it."""
    width = len(output.code(0)) if output.sources else 0
    rows = [
        output.code(output.sources.index(s)) if s >= 0 else [-1] * width for s in selected.tolist()
    ]
    return np.array(rows, np.int8).reshape(len(rows), width)


def _branched(counts: Sequence[int], others: int) -> list[bool]:
    """Whether each out-port has branches: not where a full crossbar takes less, and it would, too.

    That has the in-ports, and as many words of the node as there are out-ports to send them by.
    """
    ports = len(counts)
    full = ports * lut_count(ports + min(others, ports))
    dear = sum(map(branch_luts, counts)) > full
    return [not dear or branch_luts(count) <= lut_count(count) for count in counts]


def _share(registers: list[_Register], wanted: _Register) -> int:
    """The first register that can serve as the one that is wanted."""
    theirs = wanted.values
    for number, (mine, delay) in enumerate(registers):
        if delay == wanted.delay and not ((mine != theirs) & (mine >= 0) & (theirs >= 0)).any():
            registers[number] = _Register(np.maximum(mine, theirs), delay)
            return number
    registers.append(wanted)
    return len(registers) - 1


def select_registers(
    m: Module, outputs: Sequence[Output], early: Sequence[Value], *, alone: bool
) -> list[Value]:
    """The select bits of each out-port of a crossbar, given a cycle early.

    Parameters
    ----------
    early : sequence of Value
        By the numbers of the registers.
    alone : bool
        Whether the text of a module is written: there they are held where they are used, in a copy
        for each slice of a word. For a simulator all are held here.
    """
    held: Sequence[Value] = early
    if early and not alone:
        held = [*apart(m, Cat(*early), name="select_here")]
    return [Cat(*(held[bit] for bit in output.bits)) for output in outputs]


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
        Its inputs are the in-ports, then the registers behind some of them, then what the node
        makes and injects, then the word that changes nothing.
    bits : sequence of Location, optional
        Where the value of each select register lies: by default in a column for each.
    row_bits : int
        Bits of a row of the node's table.
    delayed : sequence of int
        The in-ports with a register behind them.
    injections : int
        Number of words that the node makes and injects.
    width : int
        Bits of a word.
    unit : OperatorUnit, optional
        Says which word changes nothing, where out-ports select it.

    Members
    -------
    select : In
        What the sequencer gives, a cycle before the words that it concerns enter; if any.
    setting : In
        The node's table, a cycle before the words that it concerns enter; if any.
    operator_code : In
        The control bits of the operator, while a run is under way; if the word that changes nothing
        depends on them.
    enable : In(1)
        Whether words advance, a cycle before they do.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(injections * width)
        Words of injection ports and of operators behind in-ports, if any.
    tx : Out(ports * width)
        A word to each out-port.

    Examples
    --------
    Two out-ports: one always passes on the other in-port, one selects the injection port or in-port
    0.

    >>> import numpy as np
    >>> from torusfabric.rtl.router import plan_crossbar
    >>> router = Router(plan_crossbar(np.array([[1, 2], [1, 0]])), injections=1, width=8)
    >>> sorted(router.signature.members), len(router.tx)
    (['enable', 'inject', 'rx', 'select', 'tx'], 16)
    """

    def __init__(
        self,
        crossbar: Crossbar,
        *,
        bits: Sequence[Location] | None = None,
        row_bits: int = 0,
        delayed: Sequence[int] = (),
        injections: int = 0,
        width: int,
        unit: OperatorUnit | None = None,
    ) -> None:
        ports = len(crossbar.outputs)
        registers = range(crossbar.rom.shape[1])
        self.crossbar = crossbar
        self._bits = bits or [Location(1, (0,), column=k) for k in registers]
        columns = {at.column for at in self._bits} - {None}
        self._delayed, self._injections, self._width = delayed, injections, width
        known = ports + len(delayed) + injections
        self._unit = unit if any(known in output.sources for output in crossbar.outputs) else None
        super().__init__(
            {
                "operator_code": In(self._unit.identity_bits(width) if self._unit else 0),
                "select": In(len(columns)),
                "setting": In(row_bits),
                "inject": In(injections * width),
                "enable": In(1),
                "rx": In(ports * width),
                "tx": Out(ports * width),
            }
        )
        self.tx = Signal(ports * width, reset_less=True, name="tx")

    @property
    def own_words(self) -> int:
        """Number of words that are selected beside those of in-ports."""
        outputs = self.crossbar.outputs
        return len({word for each in outputs for word in each.words if word >= len(outputs)})

    def elaborate(self, platform: object) -> Module:
        """Build the crossbar, and a register behind each out-port."""
        m = Module()
        width = self._width
        arriving = self.words("rx", width)
        later = [Signal(width, reset_less=True, name=f"rx_{port}_d1") for port in self._delayed]
        words = arriving + later + (self.words("inject", width) if self._injections else [])
        if self._unit:
            words.append(self._unit.identity(self._code(m), width))
        outputs = self.crossbar.outputs
        selects = select_registers(m, outputs, [*map(self._bit, self._bits)], alone=self.alone)
        out = []
        for port, (output, select) in enumerate(zip(outputs, selects, strict=True)):
            inputs = [words[source] for source in output.words]
            name = f"to_port_{port}" if self.alone else None
            out.append(multiplexed(m, inputs, select, width, name=name, branched=output.branched))
        with m.If(apart(m, self.value("enable"), name="enable_here")):
            m.d.sync += self.tx.eq(Cat(*out))
            m.d.sync += [
                word.eq(arriving[port]) for port, word in zip(self._delayed, later, strict=True)
            ]
        return m

    def _bit(self, at: Location) -> Value:
        """A select bit: of the sequencer, of the table, or of either."""
        bits: list[Value] = []
        if at.column is not None:
            bits.append(self.value("select")[at.column])
        if at.start is not None:
            bits.append(self.value("setting")[at.start])
        return reduce(or_, bits) if bits else Const(0)

    def _code(self, m: Module) -> Value:
        """The control bits of the operator, where the word that changes nothing needs them."""
        if "operator_code" not in self.signature.members:
            return Const(0, 0)
        return apart(m, self.value("operator_code"), name="operator_here")
