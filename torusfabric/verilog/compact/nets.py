"""What nets are called in text with loops, and where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from ...rtl.arrays import Array, Fixed, OneOf, Part, Slice
from ...rtl.netlist import Netlist
from ..syntax import filled, range_of
from ..top import concatenation
from .tables import Tables, local_name, unused

__all__ = ["Nets"]


class Nets:
    """The nets of a netlist.

    Attributes
    ----------
    scopes : dict of str to (list of Array)
        What there is in each scope.
    owner : dict of str to str
        The scope of each net that there is one of each member, by its name with ``{}``.
    local : dict of str to str
        What these are called in their scopes: as nothing outside.
    singles : dict of str to int
        The bits of nets that there are once.
    tables : Tables
    joined : list of str
        Lines that declare nets and constants made of others.
    inside : dict of str to (list of str)
        Such lines of nets in each scope.
    """

    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self.scopes: dict[str, list[Array]] = {}
        self.owner: dict[str, str] = {}
        for array in netlist.arrays:
            if array.scope:
                self.scopes.setdefault(array.scope, []).append(array)
                nets = (net for net, _ in array.outputs.values() if "{}" in net)
                self.owner.update(dict.fromkeys(nets, array.scope))
        self.singles = netlist.single_nets
        alone = {array.name for array in netlist.arrays if not array.scope}
        self.tables = Tables({*self.singles, *self.scopes, "k", "one", "clk", "rst"} | alone)
        self.local = {
            net: local + "_here" * (local in self.tables.names)
            for net, local in ((net, local_name(net)) for net in self.owner)
        }
        self._vectors: dict[object, tuple[str, int, int]] = {}
        self.joined: list[str] = []
        self.inside: dict[str, list[str]] = {scope: [] for scope in self.scopes}

    def scopes_in_order(self) -> list[str]:
        """Scopes, each behind those whose nets it reads; as they are if some read one another."""
        reads: dict[str, set[str]] = {scope: set() for scope in self.scopes}
        for scope, arrays in self.scopes.items():
            sources = [s for array in arrays for every in array.inputs.values() for s in every]
            nets = [
                each.net
                for source in sources
                for each in (source.slices if isinstance(source, OneOf) else [source])
                if isinstance(each, Slice)
            ]
            reads[scope] = {self.owner[net] for net in nets if net in self.owner} - {scope}
        try:
            return [*TopologicalSorter(reads).static_order()]
        except CycleError:
            return [*self.scopes]

    def parts(self, parts: Iterable[Part | Fixed]) -> str:
        """Parts of nets that have their own names, the most significant first."""
        return concatenation(parts, lambda net: (self.literal(net), self._width(net)))

    def _member(self, net: str) -> tuple[str, int] | None:
        """Of which net that there is one of each member, and which member, a name is."""
        if net not in self.singles or net in self._netlist.outputs:
            for found in re.finditer(r"(?<=_)\d+(?=_|$)", net):
                pattern = f"{net[: found.start()]}{{}}{net[found.end() :]}"
                if pattern in self.owner:
                    return pattern, int(found[0])
        return None

    def literal(self, net: str) -> str:
        """A net that has a name of its own in plain text."""
        member = self._member(net)
        return f"{self.owner[member[0]]}[{member[1]}].{self.local[member[0]]}" if member else net

    def _width(self, net: str) -> int:
        member = self._member(net)
        if net in self.singles:
            return self.singles[net]
        assert member is not None, f"net {net} is driven"
        return self.width_of(member[0])

    def width_of(self, pattern: str) -> int:
        """The bits of a net that there is one of each member of a scope: the most of any."""
        return max(
            width
            for array in self.scopes[self.owner[pattern]]
            for net, width in array.outputs.values()
            if net == pattern
        )

    def vector_of(self, pattern: str) -> tuple[str, int, int]:
        """Nets with numbers, of instances alone, as one: its name, the bits of each, how many."""
        if pattern not in self._vectors:
            found = re.compile(re.escape(pattern).replace(r"\{\}", r"(\d+)"))
            numbers = {int(at[1]) for net in self.singles if (at := found.fullmatch(net))}
            nets = [pattern.format(number) for number in range(max(numbers) + 1)]
            width = self.singles[pattern.format(min(numbers))]
            assert {self.singles.get(net, width) for net in nets} == {width}, "they are alike"
            name = unused(f"{local_name(pattern)}_of_all", self.tables.names)
            every = [net if net in self.singles else f"{width}'d0" for net in reversed(nets)]
            head = f"  wire {range_of(width * len(nets))}{name} = {{"
            self.joined += filled(head, every, "};")
            self._vectors[pattern] = name, width, len(nets)
        return self._vectors[pattern]

    def choice_of(self, slices: Sequence[Slice]) -> tuple[str, int]:
        """Nets of members of a scope as one net there: its name, and the bits of each."""
        nets = tuple(each.net for each in slices)
        if nets not in self._vectors:
            scope, width = self.owner[nets[0]], self.width_of(nets[0])
            stem = re.sub(r"_\d+(?=_|$)", "", self.local[nets[0]])
            name = unused(f"every_{stem}", self.tables.names)
            every = [self.local[net] for net in reversed(nets)]
            head = f"      wire {range_of(width * len(nets))}{name} = {{"
            self.inside[scope] += filled(head, every, "};")
            self._vectors[nets] = name, width, len(nets)
        return self._vectors[nets][:2]

    def in_one_scope(self, slices: Sequence[Slice]) -> bool:
        """Whether nets are of the same members of a scope, and as wide."""
        owners = {self.owner.get(each.net) for each in slices}
        return (
            len(owners) == 1
            and None not in owners
            and all(each.number is slices[0].number and each.start == 0 for each in slices)
            and len({self.width_of(each.net) for each in slices}) == 1
        )
