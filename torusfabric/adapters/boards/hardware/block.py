"""The fabric of one of several boards alone, whose link ports are looped back."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from amaranth.hdl import ClockSignal, Module

from ....errors import InputError
from ....rtl.assembly import Assembly
from ....rtl.fabric import Fabric
from ....rtl.front import Front, short_digest
from ...bus.front import BusFront
from ...bus.options import Bus
from .alone import alone
from .link_plan import LinkPlan
from .system import BoardFront, BoardSystem, link_port

if TYPE_CHECKING:
    import numpy as np


__all__ = ["Block"]

#: The most link ports that a register shows.
MOST_LINKS = 32


class Links(Protocol):
    """What carries the words of link ports."""

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect the link ports of a design, that of a board."""


class BlockFront(BoardFront):
    """The front of a block."""

    withdraws = True

    def __init__(self, block: Block, *, for_bus: bool) -> None:
        super().__init__(block.system, block.number, plan=block.plan, for_bus=for_bus)
        self._block = block

    @property
    def digest(self) -> int:
        """A number of 32 bits by which software recognises the block of these boards."""
        system, links = self._block.system, self._block.links
        plan = system.plan
        name = f"{system.boards} {self._block.number} {plan.ppm} {plan.retries} "
        name += f"{plan.start_timeout}" + f" {system.phy.name}" * bool(links)
        return short_digest(f"{super().digest} {name}")


class Block(Fabric):
    """The fabric of one of several boards, to be run alone.

    Each link port is given what the one sends that would be at its other end. So all is there that
    a board has, and a run takes as long as one on all boards; what nodes then receive, `delivered`
    says.

    Parameters
    ----------
    links : Links, optional
        What carries the words of its links; by default they are looped back.

    Raises
    ------
    InputError
        If it has too many link ports.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.topology.boards import Boards
    >>> ring = tf.Torus(4, link_latency=9)
    >>> fabric = tf.Fabric(tf.compile(tf.plan(ring, "allgather")), width=8)
    >>> block = Block(BoardSystem(fabric, Boards.parse("2", ring)), 1)
    >>> block.here, block.predicted_cycles - fabric.predicted_cycles
    ([2, 3], 74)
    """

    def __init__(
        self,
        system: BoardSystem,
        board: int,
        *,
        bus: str | None = None,
        links: Links | None = None,
    ) -> None:
        self.system: BoardSystem = system
        self.number, self.links, self.bus = board, links, bus
        if system.plan.links > MOST_LINKS:
            raise InputError(
                f"Link ports of a block must be at most {MOST_LINKS}, not {system.plan.links}"
            )
        front: Front = BlockFront(self, for_bus=bus is not None)
        super().__init__(BusFront(Bus(bus), front) if bus else front)

    def __reduce__(self) -> Any:
        return partial(Block, bus=self.bus, links=self.links), (self.system, self.number)

    @property
    def runs_alone(self) -> bool:
        """True if its link ports are looped back."""
        return not self.links

    @cached_property
    def plan(self) -> LinkPlan:
        """That of the links of all boards, or of a board that has links to itself alone."""
        plan = self.system.plan
        return plan if self.links else replace(plan, boards=plan.boards.alone)

    def behind(self, bus: str | None) -> Block:
        """Return the same block behind another bus, or none."""
        return Block(self.system, self.number, bus=bus, links=self.links)

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Say which board it is, and loop the link ports back, or connect them."""
        m.d.comb += design.net("board").eq(self.number)
        if self.links:
            self.links.connect(m, design, platform)
            return
        for link, end in enumerate(self.plan.boards.ends[self.number]):
            m.d.comb += design.net(link_port(link, "rx_clk")).eq(ClockSignal())
            for what in ("word", "frame"):
                came = design.net(link_port(link, f"rx_{what}"))
                m.d.comb += came.eq(design.net(link_port(end.link, f"tx_{what}")))

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Clock edges from the start to done, without the wait for all boards."""
        return self.system.plan.cycles(super().cycles_of(length, mode=mode))

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """What nodes receive, and which of it comes from nodes of the block alone."""
        boards, width = self.system.boards, self.width
        found, known = alone(self.program, boards, self.number, words, **chosen, width=width)
        _, receives = self.program.delivered(words, **chosen, width=width)
        return found, known & receives
