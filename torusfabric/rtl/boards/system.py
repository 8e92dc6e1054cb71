"""A fabric on several boards: the netlist of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import InputError
from ..fabric import Fabric, Top
from ..fabric_builder import FabricBuilder
from ..run_choices import RunChoices
from ..tops import add_host_top
from .attach import add_board
from .link_plan import LinkPlan
from .phy import PARALLEL, Phy

if TYPE_CHECKING:
    from ...topology.boards import Boards
    from ..netlist import Netlist

__all__ = ["BoardSystem", "plan_links"]


def plan_links(
    fabric: Fabric, boards: Boards, *, ppm: float, retries: int, phy: Phy = PARALLEL
) -> LinkPlan:
    """What the links of a fabric need on some boards, be theirs long enough or not."""
    return LinkPlan(
        boards,
        fabric.width,
        RunChoices.of(fabric.program).inputs,
        longest=fabric.predicted_cycles,
        ppm=ppm,
        retries=retries,
        phy=phy,
    )


@dataclass(frozen=True)
class BoardSystem:
    """A fabric with a host port, whose nodes lie on several boards.

    Each board has a sequencer, which steps through the same program as those of all others, and a
    host port to its own nodes. Their cut arcs end at link ports.

    Parameters
    ----------
    fabric : Fabric
        The same on one chip: what it computes, and in how many cycles.
    boards : Boards
        Of its topology.
    ppm : float
        By how much the frequency of each oscillator may be off, in millionths.
    retries : int
        How often a run is repeated of which a link lost something.
    phy : Phy
        What carries words between boards.

    Raises
    ------
    InputError
        If the fabric has another top, or links do not fit; see `LinkPlan`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.topology.boards import Boards
    >>> torus = tf.Torus(4, 4, link_latency="0:20")
    >>> fabric = tf.Fabric(tf.compile(tf.plan(torus, "allgather")), width=8)
    >>> system = BoardSystem(fabric, Boards.parse("2x1", torus))
    >>> system.kind_of, len(system.plan.boards.links)
    ((0, 0), 8)
    """

    fabric: Fabric
    boards: Boards
    ppm: float = 100.0
    retries: int = 1
    phy: Phy = PARALLEL

    def __post_init__(self) -> None:
        if self.fabric.top is not Top.HOST or self.fabric.bus:
            raise InputError(
                f"Top must be host for several boards, not {self.fabric.bus or self.fabric.top}"
            )
        if self.fabric.aborts:
            raise InputError("Abort must be left out for several boards, which end runs together")
        self.plan.check()

    @cached_property
    def plan(self) -> LinkPlan:
        """What their links need."""
        return plan_links(
            self.fabric, self.boards, ppm=self.ppm, retries=self.retries, phy=self.phy
        )

    @cached_property
    def netlists(self) -> tuple[Netlist, ...]:
        """The netlist of each board; those of a kind are one."""
        each = [netlist for netlist, _ in self._built]
        keys = [_key(netlist) for netlist in each]
        return tuple(each[keys.index(key)] for key in keys)

    @property
    def kind_of(self) -> tuple[int, ...]:
        """The kind of each board, by the number of the first one of it among the kinds."""
        kinds = list(dict.fromkeys(map(id, self.netlists)))
        return tuple(kinds.index(id(netlist)) for netlist in self.netlists)

    @cached_property
    def read_latency(self) -> int:
        """Edges from an address to its data."""
        return self._built[0][1]

    @cached_property
    def _built(self) -> tuple[tuple[Netlist, int], ...]:
        """The netlist of each board, and the latency of its host port."""
        program, width = self.fabric.program, self.fabric.width
        placement, built = self.fabric.placement, []
        for board in range(self.boards.number):
            build = FabricBuilder(program, placement, width, Top.HOST, self.boards, board=board)
            top = add_host_top(build, self.fabric.form_layouts)
            add_board(build, self.plan)
            built.append((build.done(), top.read_latency))
        return tuple(built)

    def cycles(self, run: int, attempts: int = 1) -> int:
        """Cycles from the common start to done, of a run that takes so many on one board."""
        return self.plan.cycles(run, attempts)


def _key(netlist: Netlist) -> tuple[object, ...]:
    """What is equal for boards of a kind."""
    return (
        tuple(netlist.inputs.items()),
        tuple(netlist.outputs.items()),
        tuple(netlist.modules),
        tuple(map(repr, netlist.instances)),
    )
