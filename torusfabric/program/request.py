"""What is wanted of a program, and what all that are made of one schedule have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .address_map import AddressMap, DirectMap
from .mode import CycleCost, Form, block_flits
from .program import Program
from .timing import chunk_cycles, direct_write_delay, look_up_delay

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from ..topology import IntArray, Topology
    from .fields import Loop, Memory

__all__ = ["Request"]


@dataclass(frozen=True, eq=False)
class Request:
    """A schedule, and what is wanted of its program.

    Parameters
    ----------
    schedule : Schedule
        With at least one step.
    flits : int
        Of a message.
    operators : tuple of Operator
        Of a reduction.
    any_length : bool
        Whether messages may be shorter.
    beat : int
        Flits that then go to a chunk together.
    short : bool
        Whether sums are to be quick for short messages, where that makes a difference.
    fixed : bool
        Whether tables are; where they are loaded, sums leave nodes from a register, and every round
        ends with a pause.

    Examples
    --------
    >>> import torusfabric as tf
    >>> Request(tf.plan("4x4", "broadcast", chunks=2), flits=3).block
    2
    """

    schedule: Schedule
    flits: int
    operators: tuple[Operator, ...] = ()
    any_length: bool = False
    beat: int = 1
    short: bool = False
    fixed: bool = True

    @cached_property
    def block(self) -> int:
        """Flits of a block; those of the last block of a message may be padding."""
        return block_flits(self.schedule, self.flits, self.beat)

    @property
    def topology(self) -> Topology:
        """That of the schedule."""
        return self.schedule.topology

    @property
    def latency(self) -> int:
        """Cycles that the hardware of operators takes by itself."""
        return max(operator.latency for operator in self.operators)

    def write_delay(self, send_map: AddressMap) -> int:
        """Cycles by which a word that the host writes arrives later than it could."""
        if not isinstance(send_map, DirectMap):
            delay = look_up_delay
        else:
            delay = chunk_cycles if send_map.by_chunk else direct_write_delay
        return delay(self.schedule.layout, self.flits, any_length=self.any_length)

    def program(
        self,
        loop: Loop,
        *,
        memories: tuple[Memory, ...],
        depth: IntArray,
        variant_of: IntArray,
        send_map: AddressMap,
        moving: CycleCost | None = None,
        any_root: bool = False,
        **maps: Any,
    ) -> Program:
        """What all nodes do in the only form, given its rows and where data lie; see `Program`.

        Parameters
        ----------
        moving : CycleCost, optional
            By default a cycle for each flit of a block in each round.
        any_root : bool
            Whether the root is chosen at the start of a run, and what nodes do is by their offsets.
        **maps
            What else a `Form` says.
        """
        rounds = self.schedule.round_count
        form = Form(
            schedule=self.schedule,
            operators=self.operators,
            loop=loop,
            send_map=send_map,
            write_delay=self.write_delay(send_map),
            moving=moving or CycleCost(rounds, 0, rounds * self.block),
            any_length=self.any_length,
            beat=self.beat,
            any_root=any_root,
            by_offset=any_root,
            **maps,
        )
        return Program(
            topology=self.topology,
            flits=self.flits,
            forms=(form,),
            memories=memories,
            depth=depth,
            variant_of=variant_of,
        )
