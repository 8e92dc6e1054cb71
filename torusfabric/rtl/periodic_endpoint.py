"""The endpoint of a fabric that repeats its collective by itself: its memories have two halves.

Of what a node sends, the fabric reads one half and the host writes the other; they change places at
the next period after the node's commit. Of what it receives, the fabric stores in one half and the
host reads the other; they change places with every period.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal, Value

from .delays import delayed, pulsed
from .endpoint_builder import EndpointBuilder, asked
from .endpoint_plan import EndpointPlan
from .endpoint_shape import EndpointMemory, EndpointShape
from .memories import ReadPort, WritePort
from .memory_sections import in_section, section_bits
from .reader import Reader

if TYPE_CHECKING:
    from .endpoint import Endpoint

__all__ = ["PeriodicEndpointBuilder", "doubled"]


def doubled(plan: EndpointPlan) -> EndpointPlan:
    """The endpoints of a plan with two halves of each memory.

    What the host reads has a copy for it alone, for it reads while a run is under way. It does not
    read what a node itself sends, which is written while its period is not over.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.rtl.control import plan_control
    >>> plan = plan_control(tf.compile(tf.plan("3x3", "alltoall"))).endpoints
    >>> [memory.number for memory in plan.shapes[0].memories if memory.host_reads]
    [0, 1, 2, 3, 4]
    >>> [memory.number for memory in doubled(plan).shapes[0].memories if memory.host_reads]
    [0, 1, 2, 3]
    """
    return replace(plan, shapes=tuple(map(_doubled_shape, plan.shapes)))


def _doubled_shape(shape: EndpointShape) -> EndpointShape:
    memories = tuple(map(_doubled_memory, shape.memories))
    return replace(shape, memories=memories, sectioned=True)


def _doubled_memory(memory: EndpointMemory) -> EndpointMemory:
    if memory.own is not None:
        assert not memory.sources, "the host alone writes what a node sends"
        return replace(memory, host_reads=False)
    if memory.host_reads and memory.groups:
        return replace(memory, groups=((), *memory.groups))
    return memory


class PeriodicEndpointBuilder(EndpointBuilder):
    """Builds an endpoint whose memories have two halves.

    Parameters
    ----------
    endpoint : Endpoint
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        #: The half that readers read of what is sent, and what it is a cycle later.
        self._active, self._next_active = Signal(name="active"), Signal(name="next_active")

    def build(self) -> Module:
        """The module."""
        self._commits()
        return super().build()

    def _commits(self) -> None:
        """Change the halves of what is sent before a period, if a commit has come."""
        m, pending = self._m, Signal(name="pending")
        commit = pulsed(m, self._value("write_commit") & self._meant, 1, name="commit")
        swap = pulsed(m, self._value("swap"), 1, name="swap_here")
        m.d.sync += pending.eq((pending | commit) & ~swap)
        m.d.comb += self._next_active.eq(self._active ^ (swap & (pending | commit)))
        m.d.sync += self._active.eq(self._next_active)

    def _words(self, memory: EndpointMemory) -> int:
        """Words of a memory as it is built; the second half begins at a power of two."""
        return memory.depth + (1 << section_bits(memory.depth))

    def _write(self, memory: EndpointMemory) -> WritePort:
        """The write port: what arrives goes where the host does not read, and the other way."""
        port = super()._write(memory)
        half = ~self._active if memory.own is not None else self._storing
        return port._replace(address=in_section(port.address, memory.depth, half))

    def _read(
        self, memory: EndpointMemory, readers: list[Reader], *, copy: int, early: bool
    ) -> ReadPort:
        """The read port of a copy: of the readers, or of the host."""
        if readers:
            address, enable = asked(memory, readers), self._value("busy")
            half = self._next_active if memory.own is not None else self._value("read_half")
        else:
            address, enable = self._host.address, self._host.chosen
            # As late as the host's question itself.
            late = self._settings.host_stages - self._shape.read_stages
            half = delayed(self._m, ~self._value("store_half"), late)
        address = in_section(address, memory.depth, half)
        return self._port(address, enable, memory, copy=copy, early=early)

    @property
    def _storing(self) -> Value:
        """The half in which arriving words are stored."""
        return self._held(self._value("store_half"), "store_half_here")
