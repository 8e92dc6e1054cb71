"""The fabric of one of several boards alone, whose link ports are looped back."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from amaranth.hdl import ClockSignal, Module

from ...errors import InputError
from ...program.alone import alone
from ..assembly import Assembly
from ..fabric import Fabric, Top
from ..fabric_builder import FabricBuilder
from ..placement import place
from ..tops import Built
from .link_plan import LinkPlan
from .system import BoardSystem, add_board, link_port

if TYPE_CHECKING:
    import numpy as np

    from ..bus import Bus

__all__ = ["Block"]

#: The most link ports that a register shows.
MOST_LINKS = 32


class Links(Protocol):
    """What carries the words of link ports."""

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect the link ports of a design, that of a board."""


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
    ([2, 3], 80)
    """

    def __init__(
        self,
        system: BoardSystem,
        board: int,
        *,
        bus: Bus | str | None = None,
        links: Links | None = None,
    ) -> None:
        self.system, self.number, self.links = system, board, links
        if system.plan.links > MOST_LINKS:
            raise InputError(
                f"Link ports of a block must be at most {MOST_LINKS}, not {system.plan.links}"
            )
        fabric = system.fabric
        super().__init__(fabric.program, width=fabric.width, bus=bus, beat=fabric.beat)

    def behind(self, bus: Bus | str | None) -> Block:
        """The same behind another bus, or none."""
        return type(self)(self.system, self.number, bus=bus, links=self.links)

    @cached_property
    def _plan(self) -> LinkPlan:
        """Of a board that has links to none but itself, unless something carries them."""
        plan = self.system.plan
        return plan if self.links else replace(plan, boards=plan.boards.alone)

    def _builder(self) -> FabricBuilder:
        return FabricBuilder(
            self.program, place(self.program, self.beat), self.width, Top.HOST, self._plan.boards,
            board=self.number,
        )  # fmt: skip

    def _built(self, build: FabricBuilder) -> Built:
        return add_board(build, self.form_layouts, self._plan)

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Say which board it is, and loop the link ports back, or connect them."""
        m.d.comb += design.net("board").eq(self.number)
        if self.links:
            self.links.connect(m, design, platform)
            return
        for link, end in enumerate(self._plan.boards.ends[self.number]):
            m.d.comb += design.net(link_port(link, "rx_clk")).eq(ClockSignal())
            for what in ("word", "frame"):
                came = design.net(link_port(link, f"rx_{what}"))
                m.d.comb += came.eq(design.net(link_port(end.link, f"tx_{what}")))

    @property
    def digest(self) -> int:
        """A number of 32 bits that tells which block of which fabric it is."""
        plan = self.system.plan
        text = f"{super().digest} {self.system.boards} {self.number} {plan.ppm} {plan.retries}"
        text += f" {self.system.phy.name}" if self.links else ""
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the start to done of the longest run."""
        return self.system.plan.cycles(super().predicted_cycles)

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Clock edges from the start to done, without the wait for all boards."""
        return self.system.plan.cycles(super().cycles_of(length, mode=mode))

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """What nodes receive, and which of it comes from nodes of the block alone."""
        boards = self.system.boards
        found, known = alone(self.program, boards, self.number, words, **chosen, width=self.width)
        _, receives = super().delivered(words, **chosen)
        return found, known & receives
