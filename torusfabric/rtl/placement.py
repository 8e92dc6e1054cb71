"""Placement: where everything that a program says lies in hardware.

A program's data have an axis of variants. What is equal at all nodes becomes a column of the
sequencer, which exists once; what differs lies in a table beside the node; see
`torusfabric.rtl.place`. Variants of the same structure share one module, its *shape*: routers whose
out-ports select from the same sets of inputs, endpoints with the same memories, readers and
writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.fields import ACTIONS, IDLE, Action, Holder, Point, number_equal
from ..program.timing import ADDRESS, SETTING
from ..topology import IntArray
from .crossbar import Crossbar, plan_crossbar
from .endpoint_plan import EndpointPlan, plan_endpoints
from .loops import Loops
from .place import Column, ColumnSet, Delays, Location, RowTables, Shown, Table, columns_of

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Placement", "RouterPlan", "combiner_name", "place"]

#: Cycles from the value of a table to the register that acts on it.
TABLE = 1


@dataclass(frozen=True, eq=False)
class RouterPlan:
    """A router module, or what is in front of the operators behind in-ports, and its tables.

    Parameters
    ----------
    crossbar : Crossbar
        Its inputs are in-ports, registers behind them, then injection ports; in front of operators
        results, registers behind them, injection ports, and the word that changes nothing.
    injections : dict of int to (tuple of int)
        Of each variant of this shape, the injection port of the program that each of its inputs is.
    given : dict of str to (tuple of Location)
        Where bits lie that it is given: as ``select`` those of select registers, and by the name of
        each other control point, such as ``action_0``, those of its value.
    row_bits : int
        Bits of a row of the table.
    """

    crossbar: Crossbar
    injections: dict[int, tuple[int, ...]]
    given: dict[str, tuple[Location, ...]]
    row_bits: int

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the sequencer that it is given."""
        return columns_of(self.given)

    @property
    def bits(self) -> tuple[Location, ...]:
        """Where the value of each select register lies."""
        return self.given["select"]


@dataclass(frozen=True, eq=False)
class Placement:
    """Where what a program says lies: in the sequencer, or at the nodes.

    Parameters
    ----------
    selects : tuple of Column
        Select bits that the sequencer gives to routers and operators.
    columns : dict of str to Column
        All else that it gives row by row, by the names of its outputs.
    operands : tuple of RouterPlan
        In front of the operators, if there are any: one of each shape.
    operands_of : ndarray of int, shape (variants,)
    router_of : ndarray of int, shape (variants,)
    """

    selects: tuple[Column, ...]
    columns: dict[str, Column]
    operands: tuple[RouterPlan, ...]
    operands_of: IntArray
    routers: tuple[RouterPlan, ...]
    router_of: IntArray
    endpoints: EndpointPlan
    router_tables: RowTables

    @property
    def routers_look_up(self) -> bool:
        """Whether any router has a table."""
        return any(router.row_bits for router in self.routers)


def combiner_name(placement: Placement, number: int) -> str:
    """The name of the module of the operators of a shape."""
    return "combiner" if len(placement.operands) == 1 else f"combiner_{number}"


def place(program: Program) -> Placement:
    """Find a place for everything that a program says.

    Examples
    --------
    Of a table, all routers are alike and have no table of their own: every select register copies
    one of the sequencer.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
    >>> placement = place(tf.compile(schedule))
    >>> len(placement.routers), placement.routers_look_up, len(placement.selects) > 0
    (1, False, True)
    """
    loops, endpoints = Loops.of(program), plan_endpoints(program)
    shapes, router_of = _router_shapes(loops, one=program.by_offset)
    selects = ColumnSet()
    planned = [
        _planned(loops, sources, members, endpoints, one=program.by_offset)
        for sources, members in shapes
    ]
    common, uniform = _common_columns(planned), _uniform(loops)
    shown = [(members, _RouterTable(loops, members, selects)) for _, members in shapes]
    routers = tuple(
        _router(plan, table, common, uniform)
        for plan, (_, table) in zip(planned, shown, strict=True)
    )
    operands, operands_of = _operands(loops, selects)
    tables = RowTables(loops, shown)
    columns, forms = dict(endpoints.columns), len(loops.loops)
    # A table shows its row a cycle before what follows from it is there.
    if any(shape.row_bits for shape in endpoints.shapes):
        columns["row"] = Column(endpoints.tables.numbers, (ADDRESS - TABLE,) * forms)
    if any(router.row_bits for router in routers):
        columns["setting_row"] = Column(tables.numbers, (SETTING - TABLE,) * forms)
    return Placement(
        selects.all, columns, operands, operands_of, routers, router_of, endpoints, tables
    )


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


class _RouterTable(Table):
    """The table at the nodes of a shape of routers, beside what the sequencer gives to them."""

    def __init__(self, loops: Loops, members: list[int], columns: ColumnSet) -> None:
        super().__init__(len(members), [span for _, span in loops.spans()], by_form=False)
        self.loops, self.members, self._columns = loops, members, columns

    def bit(
        self,
        values: IntArray,
        delays: Delays,
        given: Sequence[bool],
        shown: Shown = Shown.VALUE,
    ) -> Location:
        """Find a place for a bit, given its values by member and row; `given` as of `place`."""
        column = Column(values[0], delays, shown) if any(given) else None
        at = self.place(values, columns=self._columns, column=column, given=given)
        looked_up = [delay for delay, whole in zip(delays, given, strict=True) if not whole]
        assert at.start is None or {*looked_up} <= {SETTING, None}, "tables show what is set next"
        return at

    def point(self, point: Point) -> tuple[Location, ...]:
        """Find a place for each bit of the value of a control point; 0 where it does nothing."""
        loops, acts = self.loops, ACTIONS[point.action].acts
        values, delays = loops.values(point), loops.delays(point)
        shown, idle = (Shown.STROBE, 0) if acts else (Shown.VALUE, IDLE)
        found = []
        for k in range(max(int(values.max()), 0).bit_length()):
            bit = np.where(values >= 0, values >> k & 1, idle)
            given = [bool((bit[span] == bit[span, :1]).all()) for _, span in loops.spans()]
            at = self.bit(bit[:, self.members].T, delays, given, shown)
            if acts and at.start is not None:
                anywhere = np.any(values > 0, axis=1).astype(int)
                strobe = self._columns.add(Column(anywhere, delays, shown))
                at = replace(at, strobe=strobe)
            found.append(at)
        return tuple(found)


def _router(
    plan: _Planned, table: _RouterTable, common: set[Alike], uniform: Sequence[bool]
) -> RouterPlan:
    """A router module.

    What is common to all routers, and all of loops in which they do the same, comes from the
    sequencer.
    """
    given = {
        "select": tuple(
            table.bit(
                plan.values[:, :, k],
                delays,
                [
                    alike in common or whole
                    for alike, whole in zip(_alike(plan, k), uniform, strict=True)
                ],
            )
            for k, delays in enumerate(plan.crossbar.delays)
        )
    }
    for point in table.loops.points(Holder.ROUTER):
        bits = () if point.action is Action.SELECT else table.point(point)
        if bits:
            given[f"{point.action.value}_{point.number}"] = bits
    injections = dict(zip(table.members, plan.injections, strict=True))
    return RouterPlan(plan.crossbar, injections, given, table.width)


def _operands(loops: Loops, selects: ColumnSet) -> tuple[tuple[RouterPlan, ...], IntArray]:
    """The different crossbars in front of operators, and which of them each variant has."""
    if not any(loop.combining for loop in loops.loops):
        return (), np.zeros(loops.variants, int)
    inputs = []
    for loop in loops.loops:
        fields = [loop.values(Action.OPERAND, port) for port in range(loop.ports)]
        operand = np.stack(fields, axis=-1).astype(int)
        # Its inputs begin with the results.
        inputs.append(np.where(operand >= 0, operand - loop.sources.first_result, IDLE))
    operand = loops.joined(inputs)
    if (operand == operand[:, :1]).all():
        every = tuple(range(len(loops.first.sources.injections)))
        alike = [(operand[:, 0], every)] * loops.variants
    else:
        alike = [_named(loops, operand[:, variant]) for variant in range(loops.variants)]
    shape_of, first = number_equal(values.tobytes() for values, _ in alike)
    plans, everywhere = [], [True] * len(loops.loops)
    for number, variant in enumerate(first.tolist()):
        crossbar = plan_crossbar(alike[variant][0], _delays(loops, Action.OPERAND, None))
        members = np.flatnonzero(shape_of == number).tolist()
        table = _RouterTable(loops, members, selects)
        bits = tuple(
            table.bit(crossbar.rom[:, k][None], delays, everywhere)
            for k, delays in enumerate(crossbar.delays)
        )
        injections = {member: alike[member][1] for member in members}
        plans.append(RouterPlan(crossbar, injections, {"select": bits}, 0))
    return tuple(plans), shape_of


def _named(loops: Loops, operand: IntArray) -> tuple[IntArray, tuple[int, ...]]:
    """Operands of a variant with the injection ports that it uses alone, and these."""
    sources = loops.first.sources
    first, last = (n - sources.first_result for n in (sources.first_injection, sources.identity))
    within = (operand >= first) & (operand < last)
    used = np.unique(operand[within])
    named = np.where(operand == last, first + len(used), operand)
    named = np.where(within, first + np.searchsorted(used, operand), named)
    return named, tuple((used - first).tolist())


def _delays(loops: Loops, action: Action, unused: int | None) -> list[Delays]:
    """The delays of an action at each port; of what is never decided any will do."""
    return [loops.delays(Point(action, port), unused) for port in range(loops.first.ports)]
