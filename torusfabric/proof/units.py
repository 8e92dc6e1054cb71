"""What is carried out as it is proved to be: operators behind in-ports, links, and ROMs.

Where a link is a memory that is written all around, it may stand anywhere in it when a run begins;
so it is proved of the module alone that words come out as late as they should.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.links import Link
from ..rtl.netlist import Role
from ..rtl.placement import combiner_name
from ..topology import IntArray
from .gates import WORDS, Bit, GateText
from .symbols import UNKNOWN, multiplexed, number_of

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.router import Crossbar, Output
    from .sums import Sums

__all__ = ["SLICE", "Roms", "Unit", "registers_of_links", "units"]

#: The bit of each word that is carried out.
SLICE = 0


@dataclass(kw_only=True)
class Unit:
    """All instances of a module, as they are proved to be; of words one bit is shown.

    Parameters
    ----------
    made : bool
        Whether what is made is given away before it is in a register.
    """

    width: int
    made: bool = False
    _at: dict[str, IntArray] = field(default_factory=dict, init=False)
    _shape: tuple[int, int] = field(default=(0, 0), init=False)

    def find_nets(self, names: list[str], text: GateText, net: Callable[[Bit], int]) -> None:
        """Find the nets of all instances."""
        pins = [text.instances[name].pins for name in names]
        self._shape = len(names), 1
        for port in (port for port in pins[0] if port not in ("clk", "rst")):
            bits = range(len(pins[0][port]))
            if port in WORDS:
                bits = range(SLICE, len(pins[0][port]), self.width)
            self._at[port] = np.array([[net(p[port][k]) for p in pins] for k in bits], np.intp)

    def prepare(self, runs: int) -> None:
        """Get ready for so many runs at once."""
        self._shape = self._shape[0], runs

    def choose(self, operations: Sequence[int]) -> None:
        """Choose the operator of each run."""

    @property
    def needs(self) -> IntArray:
        """The nets on which what is made depends."""
        ports = [self._at[port].ravel() for port in ("rx", "inject") if port in self._at]
        return np.concatenate(ports)

    @property
    def gives(self) -> IntArray:
        """The nets of what is made; none where that is not given away."""
        return self._at["made"].ravel() if self.made else np.zeros(0, int)

    def make(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of what is made."""

    def forget_words(self, nets: IntArray) -> None:
        """Forget the words that come out of registers."""
        for port in ("arrived", "result"):
            if port in self._at:
                nets[self._at[port]] = UNKNOWN

    @abstractmethod
    def unknown(self) -> IntArray:
        """A state of which nothing is known."""

    @abstractmethod
    def show(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of what comes out of registers."""

    @abstractmethod
    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        """The state after the next edge."""


@dataclass(kw_only=True)
class Line(Unit):
    """Links: a word comes out so many cycles later than it went in, `registers`.

    The state is the words on the way, the newest first.
    """

    registers: int

    def unknown(self) -> IntArray:
        return np.full((self.registers, *self._shape), UNKNOWN, np.int32)

    def show(self, state: IntArray, nets: IntArray) -> None:
        nets[self._at["arrived"]] = state[-1:]

    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        return np.concatenate([nets[self._at["sent"]], state[:-1]])


@dataclass(kw_only=True)
class Roms(Unit):
    """ROMs: each shows the row that it was asked for a cycle ago, which is the state."""

    _rows: IntArray = field(default_factory=lambda: np.zeros(0, int), init=False)

    def find_nets(self, names: list[str], text: GateText, net: Callable[[Bit], int]) -> None:
        """Find the nets of all instances, and their rows."""
        super().find_nets(names, text, net)
        roms = (text.instances[name].rom for name in names)
        self._rows = np.stack([rom.table for rom in roms if rom is not None])

    def unknown(self) -> IntArray:
        """Nothing is known of what they show."""
        return np.full((self.width, *self._shape), UNKNOWN, np.int32)

    def show(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of what they show."""
        nets[self._at["data"]] = state

    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        """What they show after the next edge."""
        del state
        at = number_of(nets[self._at["address"]])
        rows = self._rows[np.arange(len(at))[:, None], at]
        found = np.where(at[..., None] >= 0, rows, UNKNOWN).astype(np.int32)
        return np.moveaxis(found, -1, 0)


@dataclass(kw_only=True)
class Adder(Unit):
    """The operators behind in-ports.

    The state is select bits, the code, enable, and results.

    Parameters
    ----------
    operands : tuple of Output
        Of each in-port, what its words can be combined with: a result, then an injection port; one
        beyond both is the word that changes nothing.
    delayed : tuple of int
        The in-ports whose results have a second register.
    codes : tuple of int
        The control bits of each operator; empty where there are none.
    """

    operands: tuple[Output, ...]
    delayed: tuple[int, ...]
    sums: Sums
    codes: tuple[int, ...] = ()
    _code: IntArray = field(default_factory=lambda: np.zeros(0, int), init=False)

    @property
    def results(self) -> int:
        """Results, those of second registers included."""
        return len(self.operands) + len(self.delayed)

    def prepare(self, runs: int) -> None:
        super().prepare(runs)
        self._code = np.zeros(runs, int)

    def choose(self, operations: Sequence[int]) -> None:
        if self.codes:
            self._code = np.array([self.codes[number] for number in operations])

    def unknown(self) -> IntArray:
        rows = len(self._at.get("select", ())) + len(self._at.get("operator_code", ()))
        return np.full((rows + 1 + self.results, *self._shape), UNKNOWN, np.int32)

    def show(self, state: IntArray, nets: IntArray) -> None:
        nets[self._at["result"]] = state[-self.results :]

    def make(self, state: IntArray, nets: IntArray) -> None:
        nets[self._at["made"]] = np.stack(self._made(state, nets))

    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        given = [nets[self._at[p]] for p in ("select", "operator_code") if p in self._at]
        enable = nets[self._at["enable"]]
        return np.concatenate([*given, enable, self._results(state, nets)])

    def _results(self, state: IntArray, nets: IntArray) -> IntArray:
        """The results after the next edge."""
        enable, old = state[-1 - self.results], state[-self.results :]
        made = self._made(state, nets)
        results = [multiplexed(enable, old[port], word) for port, word in enumerate(made)]
        for k, port in enumerate(self.delayed):
            before = old[len(self.operands) + k]
            results.append(multiplexed(enable, before, old[port]))
        return np.stack(results)

    def _made(self, state: IntArray, nets: IntArray) -> list[IntArray]:
        """What operators make in a cycle."""
        selects = len(self._at.get("select", ()))
        select, code = state[:selects], state[selects : -1 - self.results]
        old, arriving = state[-self.results :], nets[self._at["rx"]]
        injected = [nets[self._at["inject"]]] if "inject" in self._at else []
        # With what is only made nothing is combined.
        placeholders = [arriving] if self.made else []
        words = np.concatenate([old, *placeholders, *injected])
        right = np.ones(self._shape, bool)
        for k, bit in enumerate(code):
            right &= bit == (self._code >> k & 1)
        results = []
        for port, operands in enumerate(self.operands):
            made: IntArray = np.full(self._shape, UNKNOWN, np.int32)
            for number, source in enumerate(operands.sources):
                here = right.copy()
                for register, bit in zip(operands.bits, operands.code(number), strict=True):
                    here &= select[register] == bit
                if source == len(words):
                    result = arriving[port]
                else:
                    result = self.sums.combined_bits(arriving[port], words[source])
                made = np.where(here, result, made)
            results.append(made)
        return results


def registers_of_links(fabric: Fabric) -> dict[str, int]:
    """By how many cycles words come later out of each module of links than they went in."""
    found = {}
    for name, role in fabric.netlist.roles.items():
        if role is Role.LINK:
            link = fabric.netlist.modules[name]()
            assert isinstance(link, Link)
            found[name] = link.registers
    return found


def units(fabric: Fabric, sums: Sums) -> dict[str, Unit]:
    """The operators behind in-ports, and links, as `routers` has them proved to be."""
    placement = fabric.placement
    found: dict[str, Unit] = {
        fabric.prefix + combiner_name(placement, number): _adder(fabric, plan.crossbar, sums)
        for number, plan in enumerate(placement.operands)
    }
    return found | {
        fabric.prefix + name: Line(registers=registers, width=fabric.width)
        for name, registers in registers_of_links(fabric).items()
    }


def _adder(fabric: Fabric, crossbar: Crossbar, sums: Sums) -> Adder:
    """The operators of a shape."""
    sources, unit = fabric.program.loop.sources, fabric.operator_unit
    assert unit is not None  # what adds has one
    return Adder(
        width=fabric.width, made=sources.made, operands=crossbar.outputs, sums=sums,
        delayed=sources.delayed_results, codes=unit.codes if unit.bits else (),
    )  # fmt: skip
