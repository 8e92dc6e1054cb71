"""Placement: where everything that a program says lies in hardware.

A program's data have an axis of variants. What is equal at all nodes becomes a column of the
sequencer, which exists once; what differs lies in a table beside the node; see
`torusfabric.rtl.place`. Variants of the same structure share one module, its *shape*: routers whose
out-ports select from the same sets of inputs, endpoints with the same memories, readers and
writers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program import Program
from ..program.fields import IDLE, Action, Point, Sources, number_equal
from ..program.timing import ADDRESS, SETTING
from ..topology import IntArray
from .endpoint_plan import EndpointPlan, plan_endpoints
from .endpoint_points import known, of_each
from .place import Column, ColumnSet, Delays, Location, Loops, RowTables, Table
from .router import Crossbar, plan_crossbar

if TYPE_CHECKING:
    from ..program.frame import Frame

__all__ = ["Placement", "RouterPlan", "combiner_name", "place"]

#: Cycles from the value of a table to the register that acts on it.
TABLE = 1


@dataclass(frozen=True, eq=False)
class RouterPlan:
    """A router module, or what is in front of the operators behind in-ports, and its tables.

    Parameters
    ----------
    crossbar : Crossbar
        Its inputs are in-ports, registers behind them, then other words of the node; in front of
        operators results, registers behind them, injection ports, and the word that changes
        nothing.
    words : dict of int to (tuple of int)
        Of each variant of this shape, the source of the program that each of these words is.
    bits : tuple of Location
        Where the value of each select register lies. Columns are numbered from 0 on.
    columns : dict of int to (tuple of int)
        Of each variant, which columns of the sequencer these are.
    row_bits : int
        Bits of a row of the table.
    """

    crossbar: Crossbar
    words: dict[int, tuple[int, ...]]
    bits: tuple[Location, ...]
    columns: dict[int, tuple[int, ...]]
    row_bits: int

    @property
    def word_count(self) -> int:
        """Words of the node among its inputs, beside in-ports or results."""
        return len(next(iter(self.words.values())))

    @property
    def column_count(self) -> int:
        """Columns that it is given."""
        return len(next(iter(self.columns.values())))


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
    frame : Frame or None
        What there is room for in the tables at the nodes, where these are loaded.
    """

    selects: tuple[Column, ...]
    columns: dict[str, Column]
    operands: tuple[RouterPlan, ...]
    operands_of: IntArray
    routers: tuple[RouterPlan, ...]
    router_of: IntArray
    endpoints: EndpointPlan
    router_tables: RowTables
    frame: Frame | None = None


def combiner_name(placement: Placement, number: int) -> str:
    """The name of the module of the operators of a shape."""
    return "combiner" if len(placement.operands) == 1 else f"combiner_{number}"


def place(program: Program, beat: int = 1) -> Placement:
    """Find a place for everything that a program says.

    Parameters
    ----------
    beat : int
        Flits that nodes are given, and show, at a time.

    Examples
    --------
    Of a table, all routers are alike and have no table of their own: every select register copies
    one of the sequencer.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
    >>> placement = place(tf.compile(schedule))
    >>> [router.row_bits for router in placement.routers], len(placement.selects) > 0
    ([0], True)
    """
    loops, endpoints = Loops.of(program), plan_endpoints(program, beat)
    selects, one = ColumnSet(), program.by_offset
    selected = _Inputs.of(loops, Action.SELECT, one=one)
    router_of, alike = _numbered(
        [None] * loops.variants if one else _sources(selected, loops.first.sources)
    )
    zero = all(operator.neutral_is_zero for operator in program.operators)
    first = loops.first.sources.first_injection
    shapes = [
        _Shape(
            loops, selected, members, selects, _late(selected, members, endpoints, first), zero=zero
        )
        for members in alike
    ]
    common = _common_bits(shapes, selected.uniform)
    routers = tuple(_router(shape, common, selected.uniform, one=one) for shape in shapes)
    operands, operands_of = _operands(loops, selects)
    tables = RowTables(loops, [(shape.members, shape) for shape in shapes])
    columns, forms = dict(endpoints.columns), len(loops.loops)
    # A table shows its row a cycle before what follows from it is there.
    if any(shape.row_bits for shape in endpoints.shapes):
        columns["row"] = Column(endpoints.tables.numbers, (ADDRESS - TABLE,) * forms)
    if any(router.row_bits for router in routers):
        columns["setting_row"] = Column(tables.numbers, (setting_delay(loops) - TABLE,) * forms)
    return Placement(
        selects.all, columns, operands, operands_of, routers, router_of, endpoints, tables
    )


def setting_delay(loops: Loops) -> int:
    """Return the cycles from a slot to the settings of its row that routers look up.

    Words leave later where operators of several cycles stand in front of injection ports.
    """
    return SETTING + loops.first.sources.injection_delay


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What feeds out-ports, or operators, in the rows of all loops.

    Parameters
    ----------
    values : ndarray of int, shape (variants, rows, ports)
        Inputs: what a node makes and injects has new numbers in each variant, stage by stage in the
        order in which out-ports use it first, or operators have it.
    words : list of (tuple of int)
        Of each variant, the source of the program that each of these is.
    first : int
        The number of the first of them.
    uniform : list of bool
        Of each loop, whether all variants select the same.
    """

    action: Action
    values: IntArray
    words: list[tuple[int, ...]]
    first: int
    uniform: list[bool]

    @classmethod
    def of(cls, loops: Loops, action: Action, *, one: bool) -> _Inputs:
        """Those of an action; words have the same numbers everywhere if there is one shape."""
        sources = loops.first.sources
        start, first = 0, sources.first_result
        if action is Action.OPERAND:
            # Inputs begin with the results.
            start, first = first, sources.first_injection - first
        last = sources.identity - start
        ports = [loops.values(Point(action, port)) for port in range(sources.ports)]
        numbers = np.stack(ports, axis=-1).astype(int).swapaxes(0, 1)
        values = np.where(numbers >= 0, numbers - start, IDLE)
        uniform = [bool((values[:, rows] == values[:1, rows]).all()) for rows in loops.spans]
        asked = np.where((values >= first) & (values < last), values, IDLE).swapaxes(1, 2)
        stages = [stage for stage, _ in sources.listed[start:]]

        def by_stage(ports: IntArray) -> list[int]:
            found = [number for port in ports.tolist() for number in sorted({*port} - {IDLE})]
            return sorted(dict.fromkeys(found), key=stages.__getitem__)

        used = of_each(np.moveaxis(asked, 0, -1), by_stage)
        if action is Action.OPERAND:
            # More of what operators select is equal then, and so one column.
            used = [*map(sorted, used)]
        if one:
            used = [sorted({*chain(*used)})] * len(used)
        counts = np.array([len(each) for each in used])
        pairs = np.array([*chain(*used)], int)
        numbered = np.repeat(np.arange(len(used)), counts) * (last + 1) + pairs
        sorting = np.argsort(numbered)
        new = first + np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        variant, row, port = np.nonzero((values >= first) & (values < last))
        wanted = variant * (last + 1) + values[variant, row, port]
        at = np.searchsorted(numbered[sorting], wanted)
        renamed = values.copy()
        renamed[variant, row, port] = new[sorting][at]
        values = np.where(values == last, first + counts[:, None, None], renamed)
        words = [tuple(k + start for k in each) for each in used]
        return cls(action, values, words, first, uniform)


def _numbered(keys: Iterable[Hashable]) -> tuple[IntArray, list[list[int]]]:
    """The shape of each variant, and the variants of each, given what these have in common."""
    shape_of, first = number_equal(keys)
    return shape_of, [np.flatnonzero(shape_of == k).tolist() for k in range(len(first))]


def _sources(inputs: _Inputs, sources: Sources) -> list[Hashable]:
    """What each out-port of each variant selects from: words are distinguished by their stage."""
    by_variant = np.moveaxis(inputs.values, 0, -1)
    selected = of_each(by_variant, lambda rows: tuple(map(known, rows.T)))
    stages = [tuple(sources.listed[word][0] for word in words) for words in inputs.words]
    return [*zip(selected, stages, strict=True)]


def _late(
    inputs: _Inputs, members: list[int], endpoints: EndpointPlan, first: int
) -> dict[int, int]:
    """How late words are: the later, the more memories there are from which one is chosen.

    The first injection port is given.
    """
    late: dict[int, int] = {}
    for variant in members:
        for name, word in enumerate(inputs.words[variant], inputs.first):
            if word >= first:
                late[name] = max(late.get(name, 0), endpoints.choice(variant, word - first))
    return late


#: What a select bit is in all rows of a loop: the loop, the values, the delay.
Bit: TypeAlias = tuple[int, bytes, int | None]


class _Shape(Table):
    """A crossbar over all rows of all variants of a shape, and the table at these nodes.

    Select registers are shared where that suits all variants. The word that changes nothing, behind
    all others, may be 0.

    Attributes
    ----------
    values : ndarray of int, shape (variants, rows, select registers)
    given : list of (tuple of int)
        Of each column that a router is given, that of the sequencer for each member.
    """

    def __init__(
        self,
        loops: Loops,
        inputs: _Inputs,
        members: list[int],
        columns: ColumnSet,
        late: Mapping[int, int] = MappingProxyType({}),
        *,
        zero: bool = False,
    ) -> None:
        super().__init__(len(members), loops.spans, by_form=False)
        self.loops, self.members, self._columns = loops, members, columns
        self.given: list[tuple[int, ...]] = []
        self._words = {variant: inputs.words[variant] for variant in members}
        values, action = inputs.values[members], inputs.action
        rows, inverse = np.unique(values.reshape(-1, values.shape[-1]), axis=0, return_inverse=True)
        self._setting = setting_delay(loops)
        unused = self._setting if action is Action.SELECT else None
        ports = range(values.shape[-1])
        self._crossbar = plan_crossbar(
            rows,
            [loops.delays(Point(action, port), unused) for port in ports],
            late,
            # The choice of an operand may be one with the sum, in a form of its own.
            branched=action is Action.OPERAND,
            zero=inputs.first + len(inputs.words[members[0]]) if zero else None,
        )
        self.delays = self._crossbar.delays
        self.values = self._crossbar.rom[inverse.ravel()].reshape(*values.shape[:2], -1)

    def bits(self, register: int, number: int) -> set[Bit]:
        """What a select register holds in a loop, in any variant."""
        delay, span = self.delays[register][number], self.loops.spans[number]
        values = self.values[:, span, register].astype(np.int8)
        return {(number, rows.tobytes(), delay) for rows in values}

    def has_everywhere(self, bit: Bit) -> bool:
        """Whether a select bit of every variant is so."""
        number, rows, delay = bit
        same_delay = [delays[number] == delay for delays in self.delays]
        values = self.values[:, self.loops.spans[number], same_delay]
        wanted = np.frombuffer(rows, np.int8)[:, None]
        return bool((values == wanted).all(axis=1).any(axis=1).all())

    def _bit(self, values: IntArray, delays: Delays, given: Sequence[bool]) -> Location:
        """Find a place for a bit, given its values by member and row; `given` as of `place`."""
        column = None
        if any(given):
            column = self._column(np.where(self.rows_of(given), values, 0), delays)
        at = self.place(values, column=column, given=given)
        looked_up = [delay for delay, whole in zip(delays, given, strict=True) if not whole]
        assert at.start is None or {*looked_up} <= {self._setting, None}, "one delay for all tables"
        return at

    def _column(self, values: IntArray, delays: Delays) -> int:
        """The number of the column that gives each member its values."""
        which, first = number_equal(rows.tobytes() for rows in values)
        numbers = [self._columns.add(Column(values[k], delays)) for k in first]
        of_each = tuple(numbers[k] for k in which.tolist())
        if of_each not in self.given:
            self.given.append(of_each)
        return self.given.index(of_each)

    def plan(self, given: Sequence[Sequence[bool]]) -> RouterPlan:
        """The module, with a place for what each select register holds.

        Parameters
        ----------
        given : sequence of (sequence of bool)
            Of each select register, in which forms the sequencer gives it.
        """
        every = zip(self.delays, given, strict=True)
        bits = tuple(self._bit(self.values[:, :, k], *each) for k, each in enumerate(every))
        columns = {
            variant: tuple(column[number] for column in self.given)
            for number, variant in enumerate(self.members)
        }
        return RouterPlan(self._crossbar, self._words, bits, columns, self.width)


def _common_bits(shapes: Sequence[_Shape], uniform: Sequence[bool]) -> set[Bit]:
    """Where nodes differ, what any select bit of every node with select bits is."""
    shapes = [shape for shape in shapes if shape.delays]
    if not shapes:
        return set()
    numbers = [number for number, whole in enumerate(uniform) if not whole]
    registers = range(len(shapes[0].delays))
    asked = {bit for number in numbers for k in registers for bit in shapes[0].bits(k, number)}
    return {bit for bit in asked if all(shape.has_everywhere(bit) for shape in shapes)}


def _router(shape: _Shape, common: set[Bit], uniform: Sequence[bool], *, one: bool) -> RouterPlan:
    """A router module.

    What is common to all routers, and all of loops in which they do the same, comes from the
    sequencer; by offset what is the same at any.
    """

    def shared(register: int, number: int) -> bool:
        bits = shape.bits(register, number)
        return len(bits) == 1 if one else bits <= common

    given = [
        [whole or shared(k, number) for number, whole in enumerate(uniform)]
        for k in range(len(shape.delays))
    ]
    return shape.plan(given)


def _operands(loops: Loops, selects: ColumnSet) -> tuple[tuple[RouterPlan, ...], IntArray]:
    """The different crossbars in front of operators, and which of them each variant has.

    The sequencer gives all that they select, for variants of a shape do the same.
    """
    if not any(loop.combining for loop in loops.loops):
        return (), np.zeros(loops.variants, int)
    inputs = _Inputs.of(loops, Action.OPERAND, one=False)
    shape_of, alike = _numbered(rows.tobytes() for rows in inputs.values)
    shapes = [_Shape(loops, inputs, members, selects) for members in alike]
    everywhere = [True] * len(loops.loops)
    return tuple(shape.plan([everywhere] * len(shape.delays)) for shape in shapes), shape_of
