"""Control: which data of a program live in the sequencer, and which in the nodes.

A program's data have an axis of variants. What is equal at all nodes becomes a *column* of the
sequencer, which exists once; what differs becomes contents of a ROM beside the node. Variants of
the same structure share one module, its *shape*: routers whose out-ports select from the same sets
of inputs, endpoints with the same memories, readers and writers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.timing import LINK, SETTING
from ..program.values import IDLE, Loop
from ..topology import IntArray
from .crossbar import Crossbar, plan_crossbar
from .endpoint_plan import EndpointPlan, plan_endpoints
from .windows import Windows

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Column", "Control", "RouterPlan", "plan_control"]


@dataclass(frozen=True, eq=False)
class Column:
    """A value that the sequencer gives to all nodes, row by row.

    Parameters
    ----------
    values : ndarray of int, shape (rows,)
    delay : int
        Cycles from a slot to the register that holds it, at the nodes.
    """

    values: IntArray
    delay: int


@dataclass(frozen=True, eq=False)
class RouterPlan:
    """A router module, and the contents of its ROMs.

    Parameters
    ----------
    crossbar : Crossbar
        Its inputs are in-ports, registers behind them, then injection ports.
    injections : dict of int to (tuple of int)
        Of each variant of this shape, the injection port of the program that each of its inputs is.
    central : tuple of int or None
        For each select register the column of the sequencer that it copies; None where its values
        come from the node's ROM.
    contents : dict of int to (tuple of int)
        Of each variant of this shape, the rows of its ROM.
    """

    crossbar: Crossbar
    injections: dict[int, tuple[int, ...]]
    central: tuple[int | None, ...]
    contents: dict[int, tuple[int, ...]]

    @property
    def local_bits(self) -> int:
        """Bits of a row of the ROM."""
        return sum(column is None for column in self.central)

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the sequencer that are copied."""
        return tuple(column for column in self.central if column is not None)


@dataclass(frozen=True, eq=False)
class Control:
    """How a program is divided between the sequencer and the nodes.

    Parameters
    ----------
    selects : tuple of Column
        Select bits that are equal at all nodes, for routers and operators.
    operands : Crossbar or None
        In front of the operators, with one column of `selects` a select register.
    operand_columns : tuple of int
    routers : tuple of RouterPlan
    router_of : ndarray of int, shape (variants,)
    windows : Windows
    endpoints : EndpointPlan
    """

    selects: tuple[Column, ...]
    operands: Crossbar | None
    operand_columns: tuple[int, ...]
    routers: tuple[RouterPlan, ...]
    router_of: IntArray
    windows: Windows
    endpoints: EndpointPlan

    @property
    def router_rows(self) -> bool:
        """Whether any router has a ROM."""
        return any(router.local_bits for router in self.routers)


def plan_control(program: Program) -> Control:
    """Divide a program between the sequencer and the nodes.

    Examples
    --------
    Of a table, all routers are alike and have no ROM: every select register copies one of the
    sequencer.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
    >>> control = plan_control(tf.compile(schedule))
    >>> len(control.routers), control.router_rows, len(control.selects) > 0
    (1, False, True)
    """
    loop = program.loop
    shapes, router_of = _router_shapes(loop, one=program.by_offset)
    columns = _Columns()
    planned = [
        _planned(loop, sources, members, one=program.by_offset) for sources, members in shapes
    ]
    common = _common_columns(planned)
    routers = tuple(
        _router(plan, members, columns, common)
        for plan, (_, members) in zip(planned, shapes, strict=True)
    )
    operands, operand_columns = _operands(loop, columns)
    windows = Windows.of(loop, any_length=program.any_length)
    return Control(
        tuple(columns.columns),
        operands,
        operand_columns,
        routers,
        router_of,
        windows,
        plan_endpoints(program, windows),
    )


class _Columns:
    """Columns of select bits; equal ones are one."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self._known: dict[tuple[bytes, int], int] = {}

    def add(self, values: IntArray, delay: int) -> int:
        """The number of a column."""
        key = np.asarray(values, np.int8).tobytes(), delay
        if key not in self._known:
            self._known[key] = len(self.columns)
            self.columns.append(Column(values, delay))
        return self._known[key]


#: What each out-port of a router selects from.
Sources: TypeAlias = tuple[tuple[int, ...], ...]


def _sources(select: IntArray) -> Sources:
    """What each out-port selects from, given what feeds it in each row."""
    return tuple(tuple(np.unique(column[column >= 0]).tolist()) for column in select.T)


def _router_shapes(loop: Loop, *, one: bool) -> tuple[list[tuple[Sources, list[int]]], IntArray]:
    """The different sets of sources of out-ports, and the variants that have them.

    Returns
    -------
    shapes : list of (Sources, list of int)
        The sources of each out-port, with injection ports as in the program; and variants.
        Injection ports are distinguished by the order in which out-ports use them only.
    shape_of : ndarray of int, shape (variants,)
    """
    used = [_sources(loop.select[:, variant]) for variant in range(loop.variants)]
    if one:
        every = [tuple(sorted(set().union(*sets))) for sets in zip(*used, strict=True)]
        return [(tuple(every), list(range(loop.variants)))], np.zeros(loop.variants, int)
    members: dict[Sources, list[int]] = {}
    shape_of = np.empty(loop.variants, int)
    for variant, sources in enumerate(used):
        names = _injection_names(sources, loop.first_injection)
        key = tuple(tuple(sorted(names.get(s, s) for s in sets)) for sets in sources)
        members.setdefault(key, []).append(variant)
    for number, variants in enumerate(members.values()):
        shape_of[variants] = number
    return list(members.items()), shape_of


def _injection_names(sources: Sources, first: int) -> dict[int, int]:
    """New numbers of injection ports, in the order in which out-ports use them."""
    names: dict[int, int] = {}
    for sets in sources:
        for source in sets:
            if source >= first:
                names.setdefault(source, first + len(names))
    return names


@dataclass(frozen=True, eq=False)
class _Planned:
    """A crossbar over all rows of all variants of a shape."""

    crossbar: Crossbar
    values: IntArray  # variants, rows, select registers
    injections: list[tuple[int, ...]]  # of each variant, the injection port that each input is


def _planned(loop: Loop, sources: Sources, members: list[int], *, one: bool) -> _Planned:
    """The crossbar of a shape: select registers are shared where that suits all its variants.

    Where one shape serves all variants, injection ports are those of the program.
    """
    first = loop.first_injection
    stacked, injections = [], []
    for variant in members:
        rows = loop.select[:, variant].astype(int)
        names = _injection_names(sources if one else _sources(rows), first)
        if one:
            last = max(names, default=first - 1)
            names = {injection: injection for injection in range(first, last + 1)}
        rename = np.arange(max(first, *names, 0) + 1) if names else np.arange(first + 1)
        for injection, name in names.items():
            rename[injection] = name
        stacked.append(np.where(rows >= 0, rename[np.maximum(rows, 0)], IDLE))
        injections.append(
            tuple(injection - first for injection in sorted(names, key=names.__getitem__))
        )
    unique, inverse = np.unique(np.concatenate(stacked), axis=0, return_inverse=True)
    crossbar = plan_crossbar(unique, loop.select_skew or (0,) * loop.ports)
    values = crossbar.rom[inverse.ravel()].reshape(len(members), loop.rows, -1)
    return _Planned(crossbar, values, injections)


def _common_columns(planned: list[_Planned]) -> set[tuple[bytes, int]]:
    """Select bits that every router with any select bits has, alike in all variants."""
    found: set[tuple[bytes, int]] | None = None
    for plan in planned:
        if plan.values.shape[2]:
            here = {
                (np.asarray(plan.values[0, :, k], np.int8).tobytes(), plan.crossbar.skews[k])
                for k in range(plan.values.shape[2])
                if (plan.values[:, :, k] == plan.values[0, :, k]).all()
            }
            found = here if found is None else found & here
    return found or set()


def _router(
    plan: _Planned, members: list[int], columns: _Columns, common: set[tuple[bytes, int]]
) -> RouterPlan:
    """A router module."""
    central: list[int | None] = []
    local = []
    for k in range(plan.values.shape[2]):
        values, skew = plan.values[0, :, k], plan.crossbar.skews[k]
        alike = (plan.values[:, :, k] == values).all()
        if alike and (np.asarray(values, np.int8).tobytes(), skew) in common:
            central.append(columns.add(values, SETTING + skew))
        else:
            central.append(None)
            local.append(k)
    weights = [1 << bit for bit in range(len(local))]
    contents = {
        variant: tuple(
            sum(w for w, bit in zip(weights, row, strict=True) if bit)
            for row in plan.values[member][:, local].tolist()
        )
        for member, variant in enumerate(members)
    }
    injections = dict(zip(members, plan.injections, strict=True))
    return RouterPlan(plan.crossbar, injections, tuple(central), contents)


def _operands(loop: Loop, columns: _Columns) -> tuple[Crossbar | None, tuple[int, ...]]:
    """The crossbar in front of the operators, and the columns of its select registers."""
    if loop.operand is None:
        return None, ()
    crossbar = plan_crossbar(loop.operand[:, 0].astype(int), loop.operand_skew)
    numbers = tuple(
        columns.add(crossbar.rom[:, k], LINK + skew) for k, skew in enumerate(crossbar.skews)
    )
    return crossbar, numbers
