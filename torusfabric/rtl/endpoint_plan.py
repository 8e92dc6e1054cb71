"""The endpoints of a fabric: which shapes there are, and what the ROMs of nodes hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .endpoint_columns import AddressColumn, ReadColumns, StoreColumn, StoreColumns
from .endpoint_program import EndpointProgram
from .endpoint_shape import EndpointShape
from .loops import Loops
from .shape_planner import Contents, ShapePlanner

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
    contents : tuple of Contents
        Of each variant.
    reads : tuple of AddressColumn
    stores : tuple of StoreColumn
    rows_of : frozenset of int
        The modes in whose rows any endpoint looks anything up.
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    contents: tuple[Contents, ...]
    reads: tuple[AddressColumn, ...]
    stores: tuple[StoreColumn, ...]
    rows_of: frozenset[int]

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


def plan_endpoints(program: Program, windows: Windows) -> EndpointPlan:
    """Plan the endpoints of a fabric.

    Parameters
    ----------
    program : Program
    windows : Windows

    Returns
    -------
    EndpointPlan

    Examples
    --------
    Of a table, all nodes have one endpoint, whose addresses come from the sequencer.

    >>> import torusfabric as tf
    >>> from torusfabric.rtl.windows import Windows
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> plan = plan_endpoints(program, Windows.of(Loops.of(program)))
    >>> len(plan.shapes), plan.shapes[0].row_bits, len(plan.reads)
    (1, 0, 1)
    """
    loops = Loops.of(program)
    reads, stores = ReadColumns.of(loops), StoreColumns.of(loops)
    endpoints = EndpointProgram(program, loops, windows, reads, stores)
    groups: dict[object, list[int]] = {}
    for variant in range(loops.variants):
        # By offset, every node may have to do what any other does.
        key = None if program.by_offset else endpoints.structure(variant)
        groups.setdefault(key, []).append(variant)
    shape_of = np.empty(loops.variants, int)
    shapes: list[EndpointShape] = []
    contents: dict[int, Contents] = {}
    rows_of: set[int] = set()
    for number, members in enumerate(groups.values()):
        shape_of[members] = number
        planner = ShapePlanner(endpoints, members)
        shape, filled = planner.plan()
        shapes.append(shape)
        rows_of |= planner.rom.used
        contents |= filled
    ordered = tuple(contents[variant] for variant in range(loops.variants))
    return EndpointPlan(
        tuple(shapes), shape_of, ordered, reads.columns, stores.columns, frozenset(rows_of)
    )
