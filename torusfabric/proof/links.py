"""What is proved of links of several cycles, and how they are carried out in whole runs.

Where a link is a memory that is written all around, it may stand anywhere in it when a run begins.
So it is proved of the module alone that words come out as many cycles later as they should, and
whole runs rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.links import Link
from ..rtl.netlist import Role
from .model import Model, earlier
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..topology import IntArray
    from ..verilog.design import Design
    from .gates import Bit, GateText
    from .solver import Harness

__all__ = ["Line", "link_harnesses", "lines"]


@dataclass
class Line:
    """Links of one module, as they are proved to be.

    Parameters
    ----------
    registers : int
        By how many cycles a word comes out later than it went in.
    width : int
        Bits of a word.
    slice_of : int
        Which of them is shown.
    """

    registers: int
    width: int
    slice_of: int
    made: bool = False
    _at: dict[str, IntArray] = field(default_factory=dict)
    _shape: tuple[int, int] = (0, 0)

    #: On which nets what comes out at once depends, and where that is shown: none.
    needs = gives = np.zeros(0, int)

    def place(self, names: list[str], text: GateText, net: Callable[[Bit], int]) -> None:
        """Find the nets of all instances."""
        pins = [text.instances[name].pins for name in names]
        self._shape = len(names), 1
        for port in ("sent", "arrived"):
            self._at[port] = np.array([net(p[port][self.slice_of]) for p in pins], np.intp)

    def prepare(self, runs: int) -> None:
        """Get ready for so many runs at once."""
        self._shape = self._shape[0], runs

    def choose(self, operations: Sequence[int]) -> None:
        """Operators are nothing to links."""

    def unknown(self) -> IntArray:
        """A state of which nothing is known: the words on the way, the newest first."""
        return np.full((self.registers, *self._shape), UNKNOWN, np.int32)

    def show(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of what comes out."""
        nets[self._at["arrived"]] = state[-1]

    def make(self, state: IntArray, nets: IntArray) -> None:
        """Nothing comes out at once."""

    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        """The state after the next edge."""
        return np.concatenate([nets[self._at["sent"]][None], state[:-1]])


def _registers(fabric: Fabric) -> dict[str, int]:
    """By how many cycles words come later out of each module of links than they went in."""
    found = {}
    for name, role in fabric.netlist.roles.items():
        if role is Role.LINK:
            link = fabric.netlist.modules[name]()
            assert isinstance(link, Link)
            found[name] = link.cycles - 1
    return found


def lines(fabric: Fabric, slice_of: int) -> dict[str, Line]:
    """The links of each module."""
    return {
        fabric.prefix + name: Line(registers, fabric.width, slice_of)
        for name, registers in _registers(fabric).items()
    }


def link_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """What is proved of the modules of links, at their real width."""
    for name, registers in _registers(fabric).items():
        model = Model(design, name, resets=False, shows=("at",))
        model.input("sent", fabric.width)
        if model.has("at"):
            model.claim("at_is_within_the_line", f"at < {registers}", ago=1)
        # A reset moves a delay line while words are on the way.
        resets = [earlier("rst", k) for k in range(registers + 1) if model.has("rst")]
        right = " || ".join([*resets, f"arrived == {earlier('sent', registers)}"])
        model.claim("words_come_out_in_time", right, ago=registers + 1)
        yield model.harness(
            f"for all words, at all times, a word comes out in cycle {registers} after it went in"
        )
