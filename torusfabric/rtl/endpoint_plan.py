"""The endpoints of a fabric: which shapes there are, and what the ROMs of nodes hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .endpoint_columns import AddressColumn, StoreColumn
from .endpoint_program import EndpointProgram
from .endpoint_shape import EndpointShape
from .shape_planner import ShapePlanner

if TYPE_CHECKING:
    from ..program import Program
    from .windows import Windows

__all__ = ["EndpointPlan", "plan_endpoints"]


@dataclass(frozen=True, eq=False)
class EndpointPlan:
    """All endpoints of a fabric.

    Parameters
    ----------
    shapes : tuple of EndpointShape
    shape_of : ndarray of int, shape (variants,)
    rows : tuple of (tuple of int)
        Of each variant, the rows of its row ROM.
    reads : tuple of AddressColumn
    stores : tuple of StoreColumn
    rows_of : frozenset of int
        The modes in whose rows any endpoint looks anything up.
    windows : Windows
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    rows: tuple[tuple[int, ...], ...]
    reads: tuple[AddressColumn, ...]
    stores: tuple[StoreColumn, ...]
    rows_of: frozenset[int]
    windows: Windows

    @property
    def read_stages(self) -> int:
        """Cycles in which each endpoint chooses the word of the memory that the host asks for."""
        return max(shape.read_stages for shape in self.shapes)

    @property
    def answer(self) -> int:
        """Cycles from a read to its word: a register, the memory, and the choice of the memory."""
        return 2 + self.read_stages

    @property
    def uses_phases(self) -> bool:
        """Whether any endpoint depends on which windows are under way."""
        return any(shape.uses_phases for shape in self.shapes)

    def choice(self, variant: int, injection: int) -> int:
        """Of how many memories a node chooses what it injects at a port."""
        shape = self.shapes[self.shape_of[variant]]
        readers = shape.injections[injection]
        return sum(len(shape.readers[reader].memories) for reader in readers)


def plan_endpoints(program: Program) -> EndpointPlan:
    """Plan the endpoints of a fabric.

    Parameters
    ----------
    program : Program

    Returns
    -------
    EndpointPlan

    Examples
    --------
    Of a table, all nodes have one endpoint, whose addresses come from the sequencer.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> plan = plan_endpoints(program)
    >>> len(plan.shapes), plan.shapes[0].row_bits, len(plan.reads)
    (1, 0, 1)
    """
    endpoints = EndpointProgram.of(program)
    count = endpoints.loops.variants
    groups: dict[object, list[int]] = {}
    for variant in range(count):
        # By offset, every node may have to do what any other does.
        key = None if program.by_offset else endpoints.structure(variant)
        groups.setdefault(key, []).append(variant)
    shape_of = np.empty(count, int)
    shapes: list[EndpointShape] = []
    rows: dict[int, tuple[int, ...]] = {}
    rows_of: set[int] = set()
    for number, members in enumerate(groups.values()):
        shape_of[members] = number
        planner = ShapePlanner(endpoints, members)
        shape, filled = planner.plan()
        shapes.append(shape)
        rows_of |= planner.rom.used
        rows |= filled
    return EndpointPlan(
        shapes=tuple(shapes),
        shape_of=shape_of,
        rows=tuple(rows[variant] for variant in range(count)),
        reads=endpoints.reads.columns,
        stores=endpoints.stores.columns,
        rows_of=frozenset(rows_of),
        windows=endpoints.windows,
    )
