"""`Block`: the fabric of a single board, with its links looped back for a test, or on real links.

`Block` behaves as a `Fabric`, so that simulation, bus interfaces and bitstreams of a single chip
serve a board, too.
"""

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
from .link_plan import LinkPlan
from .looped_back import looped_back_words
from .system import BoardFront, BoardSystem, link_port_name

if TYPE_CHECKING:
    import numpy as np


__all__ = ["Block"]

#: Largest number of link ports: a bus register has one bit for each.
MOST_LINKS = 32


class LinkHardware(Protocol):
    """The interface of the hardware between the link ports of a board and its pins."""

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Add the hardware to a module, and connect it to the link ports of a board's design."""


class BlockFront(BoardFront):
    """The hardware of one board block, with an additional input `withdraw` and a digest of its own.

    By `withdraw` the host takes back a start for which other boards have not come yet. The digest
    tells software which block this is, not only which fabric it belongs to.
    """

    withdraws = True

    def __init__(self, block: Block, *, for_bus: bool) -> None:
        super().__init__(block.system, block.number, plan=block.link_plan, for_bus=for_bus)
        self._block = block

    @property
    def digest(self) -> int:
        """A 32-bit number by which software recognises the block, its boards and their links."""
        system, links = self._block.system, self._block.links
        plan = system.link_plan
        name = f"{system.boards} {self._block.number} {plan.ppm} {plan.retries} "
        name += f"{plan.start_timeout}" + f" {system.phy.name}" * bool(links)
        return short_digest(f"{super().digest} {name}")


class Block(Fabric):
    """The fabric of one of several boards.

    By default the board runs alone, and its link ports are *looped back*: connected to each other.
    All boards have the same link ports, so this board takes the place of each neighbour. For
    example, if a cable would lead from link port b of a neighbour to link port a of this board,
    then port a receives the words of port b of this board. The block has all the hardware of a
    board, and a run takes as many cycles as on all boards. `delivered` returns the words that nodes
    then receive.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    board : int
        Number of the board in the system.
    bus : str, optional
        Ports of the bus in front of the block, by default none.
    links : LinkHardware, optional
        Hardware between link ports and pins; by default the link ports are looped back.

    Raises
    ------
    InputError
        If the board has more than 32 link ports.

    Examples
    --------
    Board 1 has nodes 2 and 3. A run takes 74 cycles longer than on one chip.

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
        links: LinkHardware | None = None,
    ) -> None:
        self.system: BoardSystem = system
        self.number, self.links, self.bus = board, links, bus
        if system.link_plan.n_links > MOST_LINKS:
            raise InputError(
                f"A block has at most {MOST_LINKS} link ports, not "
                f"{system.link_plan.n_links}; choose "
                "other --boards, which cut fewer links of a block"
            )
        front: Front = BlockFront(self, for_bus=bus is not None)
        super().__init__(BusFront(Bus(bus), front) if bus else front)

    def __reduce__(self) -> Any:
        return partial(Block, bus=self.bus, links=self.links), (self.system, self.number)

    @property
    def runs_alone(self) -> bool:
        """True if the board runs without other boards, its link ports connected to each other."""
        return not self.links

    @cached_property
    def link_plan(self) -> LinkPlan:
        """Dimensions of the links of this board, such as the depth of elastic buffers.

        On real links these are the dimensions for the links of all boards. If the board runs alone,
        they are computed for a single board that is linked to itself.
        """
        plan = self.system.link_plan
        return plan if self.links else replace(plan, boards=plan.boards.looped_back)

    def behind(self, bus: str | None) -> Block:
        """Return the same block with another bus in front of it, or with none if `bus` is None."""
        return Block(self.system, self.number, bus=bus, links=self.links)

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect those inputs of a board that a fabric on one chip does not have.

        The input `board` gets the number of the board. The link ports are connected to `links`, or
        looped back. `m` is the Amaranth module that contains the board as `design`, and `platform`
        gives the pins.
        """
        m.d.comb += design.signal_of_net("board").eq(self.number)
        if self.links:
            self.links.connect(m, design, platform)
            return
        for link, end in enumerate(self.link_plan.boards.far_ends[self.number]):
            m.d.comb += design.signal_of_net(link_port_name(link, "rx_clk")).eq(ClockSignal())
            for what in ("word", "frame"):
                came = design.signal_of_net(link_port_name(link, f"rx_{what}"))
                m.d.comb += came.eq(design.signal_of_net(link_port_name(end.link, f"tx_{what}")))

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Return the clock edges of a run, from the common start of all boards to `done`.

        Parameters
        ----------
        length : int, optional
            Flits of a message, by default the largest number.
        mode : int, optional
            Number of the mode (default 0).
        """
        return self.system.link_plan.total_cycles(super().cycles_of(length, mode=mode))

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the words that nodes receive if the board runs alone, and a flag for each word.

        The board then takes the place of its neighbours. The flag is True if the word is
        predictable: it depends on no node of another board. `words` are the words that nodes send,
        and `chosen` has the choices of the run. See `looped_back_words`.
        """
        boards, width = self.system.boards, self.width
        found, known = looped_back_words(
            self.program, boards, self.number, words, **chosen, width=width
        )
        _, receives = self.program.delivered(words, **chosen, width=width)
        return found, known & receives
