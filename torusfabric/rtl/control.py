"""Control: which data of a program live in the sequencer, and which in the nodes.

A program's data have an axis of variants. What is equal at all nodes becomes a *column* of the
sequencer, which exists once; what differs becomes contents of a ROM beside the node. Variants of
the same structure share one module, its *shape*: routers whose out-ports select from the same sets
of inputs, endpoints with the same memories, readers and writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.fields import IDLE, Action
from ..program.timing import SETTING
from ..topology import IntArray
from .crossbar import Crossbar, plan_crossbar
from .endpoint_plan import EndpointPlan, plan_endpoints
from .loops import LocalRows, Loops

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Column", "Control", "RouterPlan", "plan_control"]


@dataclass(frozen=True, eq=False)
class Column:
    """A value that the sequencer gives to all nodes, row by row.

    Parameters
    ----------
    values : ndarray of int, shape (rows of all loops,)
    delays : tuple of (int or None)
        Of each loop: cycles from a slot to the register that holds it, at the nodes; None where
        nobody looks.
    """

    values: IntArray
    delays: tuple[int | None, ...]


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
        come from the node's ROM alone.
    local : tuple of bool
        For each select register whether the node's ROM has a bit of it; where there is a column
        too, it holds what either gives, for one of them is 0.
    contents : dict of int to (tuple of int)
        Of each variant of this shape, the rows of its ROM.
    """

    crossbar: Crossbar
    injections: dict[int, tuple[int, ...]]
    central: tuple[int | None, ...]
    local: tuple[bool, ...]
    contents: dict[int, tuple[int, ...]]

    @property
    def local_bits(self) -> int:
        """Bits of a row of the ROM."""
        return sum(self.local)

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
    endpoints : EndpointPlan
    router_rows, endpoint_rows : LocalRows
        Those of which nodes have ROMs.
    """

    selects: tuple[Column, ...]
    operands: Crossbar | None
    operand_columns: tuple[int, ...]
    routers: tuple[RouterPlan, ...]
    router_of: IntArray
    endpoints: EndpointPlan
    router_rows: LocalRows
    endpoint_rows: LocalRows

    @property
    def routers_look_up(self) -> bool:
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
    >>> len(control.routers), control.routers_look_up, len(control.selects) > 0
    (1, False, True)
    """
    loops = Loops.of(program)
    endpoints = plan_endpoints(program)
    shapes, router_of = _router_shapes(loops, one=program.by_offset)
    columns = _Columns()
    planned = [
        _planned(loops, sources, members, endpoints, one=program.by_offset)
        for sources, members in shapes
    ]
    common = _common_columns(planned)
    uniform = _uniform(loops)
    routers = tuple(
        _router(plan, members, columns, common, uniform)
        for plan, (_, members) in zip(planned, shapes, strict=True)
    )
    operands, operand_columns = _operands(loops, columns)
    return Control(
        tuple(columns.columns),
        operands,
        operand_columns,
        routers,
        router_of,
        endpoints,
        LocalRows(loops, _used(routers, loops)),
        LocalRows(loops, endpoints.rows_of),
    )


#: Cycles from a slot to what follows from it, in each loop; None where nobody looks.
Delays: TypeAlias = tuple[int | None, ...]


class _Columns:
    """Columns of select bits; equal ones are one."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self._known: dict[tuple[bytes, Delays], int] = {}

    def add(self, values: IntArray, delays: Delays) -> int:
        """The number of a column that nodes see so many cycles after a slot."""
        key = np.asarray(values, np.int8).tobytes(), delays
        if key not in self._known:
            self._known[key] = len(self.columns)
            self.columns.append(Column(values, delays))
        return self._known[key]


#: What each out-port of a router selects from.
Sources: TypeAlias = tuple[tuple[int, ...], ...]


def _sources(select: IntArray) -> Sources:
    """What each out-port selects from, given what feeds it in each row."""
    return tuple(tuple(np.unique(column[column >= 0]).tolist()) for column in select.T)


def _uniform(loops: Loops) -> list[bool]:
    """Of each loop, whether all variants select the same."""
    return [bool((loop.select == loop.select[:, :1]).all()) for loop in loops.loops]


def _selected(loops: Loops) -> IntArray:
    """What feeds each out-port in the rows of all loops, shape (rows, variants, ports)."""
    return loops.joined([loop.select for loop in loops.loops])


def _router_shapes(loops: Loops, *, one: bool) -> tuple[list[tuple[Sources, list[int]]], IntArray]:
    """The different sets of sources of out-ports, and the variants that have them.

    Returns
    -------
    shapes : list of (Sources, list of int)
        The sources of each out-port, with injection ports as in the program; and variants.
        Injection ports are distinguished by the order in which out-ports use them only; where all
        variants select the same in a loop, so that the sequencer gives it, by their numbers too.
    shape_of : ndarray of int, shape (variants,)
    """
    select, count = _selected(loops), loops.variants
    used = [_sources(select[:, variant]) for variant in range(count)]
    if one:
        every = [tuple(sorted(set().union(*sets))) for sets in zip(*used, strict=True)]
        return [(tuple(every), list(range(count)))], np.zeros(count, int)
    members: dict[tuple[Sources, Sources | None], list[int]] = {}
    shape_of = np.empty(count, int)
    given = any(_uniform(loops))
    for variant, sources in enumerate(used):
        names = _injection_names(sources, loops.first.sources.first_injection)
        key = tuple(tuple(sorted(names.get(s, s) for s in sets)) for sets in sources)
        members.setdefault((key, tuple(names.items()) if given else None), []).append(variant)
    for number, variants in enumerate(members.values()):
        shape_of[variants] = number
    return [(key, variants) for (key, _), variants in members.items()], shape_of


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
    spans: list[slice]  # the rows of each loop
    injections: list[tuple[int, ...]]  # of each variant, the injection port that each input is


def _planned(
    loops: Loops, sources: Sources, members: list[int], endpoints: EndpointPlan, *, one: bool
) -> _Planned:
    """The crossbar of a shape: select registers are shared where that suits all its variants.

    Where one shape serves all variants, injection ports are those of the program. The later is a
    word, the more memories there are from which it is chosen.
    """
    first, select = loops.first.sources.first_injection, _selected(loops)
    late: dict[int, int] = {}
    stacked, injections = [], []
    for variant in members:
        rows = select[:, variant].astype(int)
        names = _injection_names(sources if one else _sources(rows), first)
        if one:
            last = max(names, default=first - 1)
            names = {injection: injection for injection in range(first, last + 1)}
        rename = np.arange(max(first, *names, 0) + 1) if names else np.arange(first + 1)
        for injection, name in names.items():
            rename[injection] = name
            choice = endpoints.choice(variant, injection - first)
            late[name] = max(late.get(name, 0), choice)
        stacked.append(np.where(rows >= 0, rename[np.maximum(rows, 0)], IDLE))
        injections.append(
            tuple(injection - first for injection in sorted(names, key=names.__getitem__))
        )
    unique, inverse = np.unique(np.concatenate(stacked), axis=0, return_inverse=True)
    crossbar = plan_crossbar(unique, _delays(loops, Action.SELECT, SETTING), late)
    values = crossbar.rom[inverse.ravel()].reshape(len(members), loops.rows, -1)
    return _Planned(crossbar, values, [span for _, span in loops.spans()], injections)


#: Select bits that are alike in all variants: the loop, the values, the delay.
Alike: TypeAlias = tuple[int, bytes, int | None]


def _alike(plan: _Planned, register: int) -> list[Alike | None]:
    """Of each loop, what a select register holds in all variants of a shape, or None."""
    found: list[Alike | None] = []
    for number, span in enumerate(plan.spans):
        values = plan.values[:, span, register]
        delay = plan.crossbar.delays[register][number]
        same = (values == values[0]).all()
        key = number, np.asarray(values[0], np.int8).tobytes(), delay
        found.append(key if same else None)
    return found


def _common_columns(planned: list[_Planned]) -> set[Alike]:
    """Select bits that every router with any select bits has, alike in all variants."""
    found: set[Alike] | None = None
    for plan in planned:
        if plan.values.shape[2]:
            registers = range(plan.values.shape[2])
            here = {alike for k in registers for alike in _alike(plan, k) if alike}
            found = here if found is None else found & here
    return found or set()


def _router(
    plan: _Planned,
    members: list[int],
    columns: _Columns,
    common: set[Alike],
    uniform: Sequence[bool],
) -> RouterPlan:
    """A router module.

    What is common to all routers, and all of loops in which they do the same, comes from the
    sequencer; in the rows of all other loops its column is 0, and in those of this one the ROM.
    """
    central: list[int | None] = []
    here, local = plan.values.copy(), []
    for k in range(plan.values.shape[2]):
        given = [
            alike in common or whole for alike, whole in zip(_alike(plan, k), uniform, strict=True)
        ]
        column = np.zeros(plan.values.shape[1], int)
        for span, everywhere in zip(plan.spans, given, strict=True):
            if everywhere:
                column[span], here[:, span, k] = plan.values[0, span, k], 0
        # Where the ROM gives it, the column must be 0 as early: nothing of the run before shows.
        delays = plan.crossbar.delays[k]
        central.append(columns.add(column, delays) if any(given) else None)
        local.append(not all(given))
    kept = [k for k, needed in enumerate(local) if needed]
    weights = [1 << bit for bit in range(len(kept))]
    contents = {
        variant: tuple(
            sum(w for w, bit in zip(weights, row, strict=True) if bit)
            for row in here[member][:, kept].tolist()
        )
        for member, variant in enumerate(members)
    }
    injections = dict(zip(members, plan.injections, strict=True))
    return RouterPlan(plan.crossbar, injections, tuple(central), tuple(local), contents)


def _used(routers: Sequence[RouterPlan], loops: Loops) -> set[int]:
    """The modes in whose rows any router looks anything up."""
    rows = [contents for router in routers for contents in router.contents.values()]
    return {
        mode
        for mode, (_, span) in enumerate(loops.spans())
        if any(any(contents[span]) for contents in rows)
    }


def _operands(loops: Loops, columns: _Columns) -> tuple[Crossbar | None, tuple[int, ...]]:
    """The crossbar in front of the operators, and the columns of its select registers."""
    if not any(loop.combining for loop in loops.loops):
        return None, ()
    inputs = []
    for loop in loops.loops:
        fields = [loop.values(Action.OPERAND, port)[:, 0] for port in range(loop.ports)]
        operand = np.stack(fields, axis=-1).astype(int)
        # Its inputs begin with the results.
        inputs.append(np.where(operand >= 0, operand - loop.sources.first_result, IDLE))
    crossbar = plan_crossbar(loops.joined(inputs), _delays(loops, Action.OPERAND, None))
    numbers = tuple(
        columns.add(crossbar.rom[:, k], delays) for k, delays in enumerate(crossbar.delays)
    )
    return crossbar, numbers


def _delays(loops: Loops, action: Action, unused: int | None) -> list[Delays]:
    """The delays of an action at each port; of what is never decided any will do."""
    found = []
    for port in range(loops.first.ports):
        fields = [loop.field(action, port) for loop in loops.loops]
        found.append(tuple(field.delay if field else unused for field in fields))
    return found
