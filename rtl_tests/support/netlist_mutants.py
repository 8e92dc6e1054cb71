"""Mutations of netlists, which simulations and proofs of hardware must notice.

A mutation changes one thing: a wire between instances, a bit of a ROM, or one place inside a
module. Every reader of the netlist has the same mutation: both engines, the emitted Verilog, and
therefore the proof.

A site is a place inside a module, named by the line of the source that makes it. Modules are
elaborated in two forms: for Verilog with instances of shared modules, for engines without. A site
that exists in only one form is left out.
"""
# ruff: noqa: SLF001  Amaranth keeps the parts of statements and memories in private members.

from collections import Counter, defaultdict
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from amaranth.hdl import Cat, Const, Fragment, Instance, Signal
from amaranth.lib.wiring import In

from torusfabric.rtl.amaranth_private import MemoryInstance, ast, no_inferred_names
from torusfabric.rtl.arrays import Constant, RomContents, Slice, SliceChoice
from torusfabric.rtl.memories import LOOK_UP
from torusfabric.rtl.netlist import Role

__all__ = ["KINDS", "Mutation", "mutations", "sampled", "with_netlist"]

SWAPPED, INVERTED, ROM_BIT, LATE, STUCK, OPERAND = KINDS = (
    "swapped ports",
    "inverted enable",
    "ROM bit",
    "register too many",
    "stuck select",
    "wrong operand",
)

#: The package, whose lines name sites.
PACKAGE = Path(__file__).parents[2] / "torusfabric"

#: Operators whose operands have an order, so that swapping them is a mutation.
ORDERED = ("-", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Mutation:
    """A change of a netlist.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    place : str
        The changed place, in words.
    change : function of (Netlist) -> Netlist
        The change.
    """

    kind: str
    place: str
    change: object

    def __str__(self):
        return f"{self.kind}: {self.place}"


def mutations(netlist):
    """Return all mutations of a netlist."""
    found = []
    for number, array in enumerate(netlist.arrays):
        sites = _rom_bits(array) if array.role is Role.ROM else _wires(array)
        for kind, place, change in sites:
            of_array = partial(_with_array, number=number, name=array.name, change=change)
            found.append(Mutation(kind, f"{array.name}, {place}", of_array))
    for name in sorted({array.module for array in netlist.arrays} & netlist.modules.keys()):
        for site in _sites(netlist.modules[name]):
            of_module = partial(_with_module, name=name, site=site)
            found.append(Mutation(site[0], f"{name}, {site[1]}, {site[2]}", of_module))
    return found


def sampled(netlist, count, seed, of=""):
    """Return `count` random mutations, an equal share of each kind as far as the kind has so many.

    Within a kind, arrays of instances and modules have equal shares.

    Parameters
    ----------
    netlist : Netlist
        The netlist.
    count : int
        Number of mutations.
    seed : int
        Seed of the random choice.
    of : str
        Array or module to change; empty for all.
    """
    random = Random(seed)
    groups = defaultdict(lambda: defaultdict(list))
    for each in mutations(netlist):
        name = each.place.partition(",")[0]
        if of in ("", name):
            groups[each.kind][name].append(each)
    turns = []
    for kind in KINDS:
        of_kind = [*groups[kind].values()]
        random.shuffle(of_kind)
        for places in of_kind:
            random.shuffle(places)
        turns.append([places[k] for k in range(max(map(len, of_kind), default=0))
                      for places in of_kind if k < len(places)])  # fmt: skip
    found = [turn[k] for k in range(count) for turn in turns if k < len(turn)]
    return found[:count]


def with_netlist(hardware, change):
    """Return a fabric, or a system of boards of one kind, with another netlist."""
    if hasattr(hardware, "netlists"):
        changed = replace(hardware)
        mutant = change(hardware.netlists[0])
        changed.__dict__["netlists"] = (mutant,) * len(hardware.netlists)
        return changed
    changed = copy(hardware)
    changed.netlist = change(hardware.netlist)
    return changed


# Between instances


def _with_array(netlist, number, name, change):
    """Return a netlist with a changed array of instances; without such an array it is unchanged."""
    arrays = [*netlist.arrays]
    if number < len(arrays) and arrays[number].name == name:
        arrays[number] = change(arrays[number])
    return replace(netlist, arrays=tuple(arrays))


def _rom_bits(array):
    """Yield the mutations of bits in the ROMs of an array."""
    contents, which, width = array.roms
    for row, number in enumerate(which.tolist()):
        for at in range(len(contents[number])):
            for bit in range(width):
                place = f"number {array.index[row]}, row {at}, bit {bit}"
                yield ROM_BIT, place, partial(_with_bit, row=row, at=at, bit=bit)


def _with_bit(array, row, at, bit):
    """Return an array of ROMs, one of which has a bit inverted."""
    contents, which, width = array.roms
    rows, which = [*contents[which[row]]], which.copy()
    rows[at] ^= 1 << bit
    which[row] = len(contents)
    contents = (*contents, tuple(rows))
    used, which = np.unique(which, return_inverse=True)
    roms = RomContents(tuple(contents[k] for k in used.tolist()), which, width)
    return replace(array, roms=roms)


def _wires(array):
    """Yield mutations of the inputs of an array, of one instance or of all."""
    widths = {port: sum(each.width for each in parts) for port, parts in array.inputs.items()}
    for port, other in zip(array.inputs, [*array.inputs][1:], strict=False):
        if widths[port] == widths[other] and str(array.inputs[port]) != str(array.inputs[other]):
            both = {port: array.inputs[other], other: array.inputs[port]}
            yield SWAPPED, f"{port} and {other} of all", partial(_with_inputs, inputs=both)
    for port, parts in array.inputs.items():
        for k, part in enumerate(parts):
            for value in range(2):
                for bit in range(min(part.width, 2)):
                    if stuck := _stuck(part, bit, value):
                        place = f"{port}, part {k}, bit {bit} of all at {value}"
                        inputs = {port: (*parts[:k], *stuck, *parts[k + 1 :])}
                        yield STUCK, place, partial(_with_inputs, inputs=inputs)
            for row, index in enumerate(array.index.tolist()):
                if elsewhere := _of_other(part, row):
                    place = f"number {index}, {port}, part {k} of another node"
                    inputs = {port: (*parts[:k], elsewhere, *parts[k + 1 :])}
                    yield OPERAND, place, partial(_with_inputs, inputs=inputs)
                if k + 1 == len(parts):
                    continue
                one, other = _mixed(part, parts[k + 1], row), _mixed(parts[k + 1], part, row)
                if one and other:
                    for kind, pair in ((SWAPPED, (one, other)), (OPERAND, (one, parts[k + 1]))):
                        place = f"number {index}, {port}, part {k} and the next"
                        inputs = {port: (*parts[:k], *pair, *parts[k + 2 :])}
                        yield kind, place, partial(_with_inputs, inputs=inputs)


def _with_inputs(array, inputs):
    """Return an array in which some inputs have other drivers."""
    return replace(array, inputs={**array.inputs, **inputs})


def _stuck(part, bit, value):
    """Return a part with a stuck bit, as parts; None for a constant or a choice of parts."""
    if not isinstance(part, Slice):
        return None
    above = part.width - bit - 1
    low = [part._replace(width=bit)] * bool(bit)
    high = [part._replace(start=part.start + bit + 1, width=above)] * bool(above)
    return (*low, Constant(value, 1), *high)


def _of_other(part, row):
    """Return a part in which one instance reads the net of the next instance."""
    if not isinstance(part, Slice) or part.number is None:
        return None
    number = part.number.copy()
    number[row] = number[(row + 1) % len(number)]
    return part._replace(number=number) if number[row] != part.number[row] else None


def _mixed(part, other, row):
    """Return a part that is `other` for one instance; None if both are alike, or constant."""
    if not (isinstance(part, Slice) and isinstance(other, Slice)) or part.width != other.width:
        return None
    count = len(part.number) if part.number is not None else row + 1
    if next(iter(part.at_instances(np.array([row])).instance_parts(1)), None) == next(
        iter(other.at_instances(np.array([row])).instance_parts(1)), None
    ):
        return None
    if part.number is None and count == 1:
        return other
    which = np.zeros(count, int)
    which[row] = 1
    return SliceChoice((part, other), which)


# Inside modules


def _with_module(netlist, name, site):
    """Return a netlist with a changed module; without such a module it is unchanged.

    Why the second name: tables that are empty at first are modules of other names, and all nodes
    share one.
    """
    empty = "empty_node_0" if name.startswith("table_node") else name.replace("table_", "empty_")
    made = {
        each: _changed(make, site)
        for each, make in netlist.modules.items()
        if each in (name, empty)
    }
    return replace(netlist, modules={**netlist.modules, **made})


def _changed(make, site):
    """Return a function that makes a module with a change at a site."""

    def made():
        leaf = make()
        plain = leaf.elaborate

        def elaborate(platform):
            fragment = Fragment.get(plain(platform), platform)
            _Rewriter(site).rewrite(fragment)
            return fragment

        leaf.elaborate = elaborate
        return leaf

    return made


def _sites(make):
    """Return the sites of a module that exist in both of its forms."""
    with no_inferred_names():
        as_text = _Rewriter().rewrite(Fragment.get(make(), None))
    leaf = make()
    for name, member in leaf.signature.members.items():
        if member.flow is In:
            leaf.bind_input(name, [getattr(leaf, name)])
    in_engines = _Rewriter().rewrite(Fragment.get(leaf, None))
    counts = [Counter(site[:2] for site in sites) for sites in (as_text, in_engines)]
    return [site for site in as_text if counts[0][site[:2]] == counts[1][site[:2]]]


class _Rewriter:
    """Visitor of all parts of a module, which changes the part at a given site.

    A site is a kind of mutation, a line of the source, and a number among the sites of that line.
    """

    def __init__(self, site=None):
        self._site, self._counts, self.sites = site, Counter(), []
        self._known, self._kept = {}, []

    def rewrite(self, fragment, name="module"):
        """Visit a fragment and all inside it; return the sites."""
        self._fragment = fragment
        for domain, statements in [*fragment.statements.items()]:
            fragment.statements[domain] = ast.Statement.cast(
                [self._statement(each, domain) for each in statements]
            )
        if isinstance(fragment, MemoryInstance):
            self._memory(fragment, name)
        if isinstance(fragment, Instance) and fragment.type == LOOK_UP:
            self._look_up(fragment, name)
        for inner, called, _ in fragment.subfragments:
            self.rewrite(inner, f"memory {called}")
        return self.sites

    def _at(self, kind, source):
        """Record a site at a line of the source; return True if it is the site to change."""
        if isinstance(source, tuple):
            path = Path(source[0])
            if not path.is_relative_to(PACKAGE):
                return False
            source = f"{path.relative_to(PACKAGE)}:{source[1]}"
        site = (kind, source, self._counts[kind, source])
        self._counts[kind, source] += 1
        self.sites.append(site)
        return site == self._site

    # Statements

    def _statement(self, statement, domain):
        match statement:
            case ast.Assign(lhs=lhs, rhs=rhs):
                rhs = self._value(rhs)
                if not isinstance(rhs, Const) and self._at(LATE, statement.src_loc):
                    rhs = self._late(rhs, "sync" if domain == "comb" else domain)
                return ast.Assign(lhs, rhs)
            case ast.Switch(test=test, cases=cases):
                changed = [
                    (patterns, [self._statement(each, domain) for each in inner], where)
                    for patterns, inner, where in cases
                ]
                test = self._value(test)
                for k in range(len(test)):
                    if isinstance(statement.test, ast.Concat) and self._at(
                        INVERTED, statement.src_loc
                    ):
                        test = Cat(test[:k], ~test[k], test[k + 1 :])
                    test = self._maybe_stuck(test, k, statement.src_loc)
                return ast.Switch(test, changed, src_loc=statement.src_loc)
        return statement

    def _late(self, value, domain):
        """Return a value delayed by one cycle."""
        late = Signal(value.shape(), name="late", reset_less=True)
        self._fragment.add_statements(domain, ast.Assign(late, value))
        return late

    def _maybe_stuck(self, value, bit, source):
        """Return a value with a stuck bit if this is the site."""
        for constant in range(2):
            if self._at(STUCK, source):
                value = Cat(value[:bit], Const(constant, 1), value[bit + 1 :])
        return value

    # Values. A value with two uses is changed once, for both.

    def _value(self, value):
        if id(value) not in self._known:
            self._kept.append(value)
            self._known[id(value)] = self._changed(value)
        return self._known[id(value)]

    def _changed(self, value):
        source = value.src_loc
        match value:
            case ast.Operator(operator=operator, operands=operands):
                given = [self._value(each) for each in operands]
                alike = len(given) == 2 and len(given[0]) == len(given[1])
                if alike and operator in ORDERED and self._at(SWAPPED, source):
                    given = given[::-1]
                if alike and not isinstance(given[1], Const) and self._at(OPERAND, source):
                    given = [given[1], given[1]]
                return ast.Operator(operator, given)
            case ast.Slice(value=whole, start=start, stop=stop):
                return ast.Slice(self._value(whole), start, stop)
            case ast.Part(value=whole, offset=offset, width=width, stride=stride):
                whole, offset = self._value(whole), self._value(offset)
                if isinstance(whole, Const):
                    whole = self._other_constant(whole, source)
                return ast.Part(whole, self._maybe_stuck(offset, 0, source), width, stride)
            case ast.Concat(parts=parts):
                parts = [self._value(each) for each in parts]
                for k in range(len(parts) - 1):
                    if len(parts[k]) == len(parts[k + 1]) and self._at(SWAPPED, source):
                        parts[k : k + 2] = parts[k + 1], parts[k]
                return ast.Concat(parts)
            case ast.SwitchValue(test=test, cases=cases):
                test = self._maybe_stuck(self._value(test), 0, source)
                patterns, values = zip(*cases, strict=True)
                values = [self._value(each) for each in values]
                for k, each in enumerate(values):
                    if isinstance(each, Const) and len(each) > 1:
                        values[k] = self._other_constant(each, source)
                    if k and len(values[k - 1]) == len(each):
                        if self._at(SWAPPED, source):
                            values[k - 1 : k + 1] = each, values[k - 1]
                        if self._at(OPERAND, source):
                            values[k - 1] = each
                return ast.SwitchValue(test, zip(patterns, values, strict=True), src_loc=source)
        return value

    def _other_constant(self, constant, source):
        """Return a constant with an inverted bit if this is the site."""
        for bit in range(len(constant)):
            if self._at(ROM_BIT, source):
                return Const(constant.value ^ 1 << bit, constant.shape())
        return constant

    # Memories

    def _memory(self, memory, name):
        """Visit enables, addresses and contents of a memory."""
        for port in memory._write_ports:
            port._en, port._addr = self._value(port._en), self._value(port._addr)
            if self._at(INVERTED, name):
                port._en = ~port._en
            if self._at(LATE, name):
                self._fragment = memory
                port._addr = self._late(port._addr, port._domain)
        for port in memory._read_ports:
            port._addr = self._value(port._addr)
            port._addr = self._maybe_stuck(port._addr, 0, name)
        if not memory._write_ports:
            rows = memory._data._init._raw  # an elaborated memory takes no other contents
            for row in range(len(rows)):
                for bit in range(memory._data.shape):
                    if self._at(ROM_BIT, f"{name}, row {row}"):
                        rows[row] ^= 1 << bit

    def _look_up(self, instance, name):
        """Visit the contents of a ROM and its address, as in a memory."""
        address, way = instance.ports["address"]
        instance.ports["address"] = self._maybe_stuck(self._value(address), 0, name), way
        contents = instance.parameters["CONTENTS"]
        width = instance.parameters["WIDTH"]
        for row in range(instance.parameters["DEPTH"]):
            for bit in range(width):
                if self._at(ROM_BIT, f"{name}, row {row}"):
                    changed = Const(contents.value ^ 1 << width * row + bit, contents.shape())
                    instance.parameters["CONTENTS"] = changed
