"""Nodes with streams whose tables are loaded: what is constant of a form comes from a table.

A table of each node says what there is to know of an entry; it is looked up when the command of a
run has come, and kept until the run begins, or has been unloaded. Words that are sent lie as the
host would write them; where those lie that are received another table says, by packet and chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..memories import choose, fitting
from ..modules import Leaf
from ..multiplexer import bit_count, select_code
from ..streams.clearing import cleared, state
from ..streams.endpoint import StreamEndpoint, StreamEndpointBuilder
from ..streams.loader import Loader
from ..streams.row_keys import RowKey
from ..streams.sections import Sections
from ..streams.shapes import LoaderShape, RunFacts, StreamEnd, UnloaderShape
from ..streams.unloader import RunQueue, Unloader
from ..streams.words import WordCounter, WordShape
from .endpoint import LoadedEndpoint, LoadedEndpointBuilder
from .layout import TableLayout
from .packing import fields_of

__all__ = [
    "CommandFacts",
    "LoadedLoader",
    "LoadedStreamEndpoint",
    "LoadedUnloader",
    "NodeFacts",
    "loader_shape",
    "unloader_shape",
]


class CommandFacts(RunFacts):
    """What commands say of a run: the entry, for loaders."""

    @property
    def unload_widths(self) -> dict[str, int]:
        """Nothing: what was said to the loader stays at the node."""
        return {}


@dataclass(frozen=True)
class EndFacts(RunFacts):
    """What nodes have looked up of a run.

    Parameters
    ----------
    load_bits, unload_bits : int
        Bits that matter to loaders, and to unloaders.
    """

    load_bits: int
    unload_bits: int

    by_form: ClassVar[bool] = False

    @classmethod
    def of(cls, layout: TableLayout) -> EndFacts:
        """Those of a fabric."""
        return cls(
            commanded=True, form_bits=0, root_bits=0, position_bits=0, sections=Sections(),
            load_bits=sum(layout.load_facts.values()),
            unload_bits=sum(layout.unload_facts.values()),
        )  # fmt: skip

    @property
    def load_widths(self) -> dict[str, int]:
        """Names and widths of what loaders are given of two messages."""
        return {"load_valid": 2, "load_facts": 2 * self.load_bits}

    @property
    def unload_widths(self) -> dict[str, int]:
        """Names and widths of what unloaders are given of a run in each section."""
        return {"unload_facts": self.sections.count * self.unload_bits}


@dataclass(frozen=True, kw_only=True)
class LoadedUnloaderShape(UnloaderShape):
    """Unloaders whose rows have the number of a memory, and may have the origin of a packet.

    Parameters
    ----------
    table_bits : int
        Of a row.
    """

    table_bits: int

    @property
    def row_bits(self) -> int:
        """Bits of a row of the table."""
        return self.table_bits


def loader_shape(layout: TableLayout, width: int) -> LoaderShape:
    """What all loaders have in common."""
    frame = layout.frame
    return LoaderShape(
        words=WordShape(frame.flits, block=frame.flits, in_turn=True),
        rows=RowKey((0,), (0,)),
        packet_bits=layout.facts["position"],
        memory_bits=0,
        base_bits=0,
        named=(True,),
        some=True,
        facts=EndFacts.of(layout),
        **_common(layout, width),
    )


def unloader_shape(layout: TableLayout, width: int, *, late: bool) -> UnloaderShape:
    """What all unloaders have in common."""
    frame, fields = layout.frame, layout.unload_fields
    return LoadedUnloaderShape(
        # As many chunks as the facts say.
        words=WordShape(
            frame.flits, (1, frame.chunks), block=frame.flits, in_turn=True, pitch=(1, 1)
        ),
        rows=RowKey((layout.facts["first_row"],), (0,)),
        packet_bits=layout.facts["first_row"],
        memory_bits=bit_count(frame.ports + 1),
        base_bits=fields["base"],
        by_root=(False,),
        roots=(0,),
        id_bits=layout.facts["position"],
        table_bits=sum(fields.values()),
        late=late,
        lacking=True,
        facts=EndFacts.of(layout),
        **_common(layout, width),
    )


def _common(layout: TableLayout, width: int) -> dict[str, Any]:
    """What both shapes have by the same names."""
    frame = layout.frame
    return {
        "packets": (frame.nodes,),
        "shifts": (0,),
        "at_root": (False,),
        "address_bits": layout.of_node.base_bits,
        "kept": True,
        "width": width,
        "data_bits": 8 * -(-width // 8),
        "beat": 1,
        "most_flits": frame.flits,
    }


class NodeFacts(Leaf):
    """Looks up what a node has to know of runs, when their commands have come.

    Members
    -------
    load_valid, load_mode : In
        Of messages of even and of odd numbers, whether their commands are there, and their entries.
    run_begins, clear : In(1)
    facts_row : In
        What the table says of an entry that was asked for in the cycle before.
    entry : Out
    known : Out(2)
        Whether what there is to know of these messages is there.
    load_facts, unload_facts : Out
        What loaders have to know of two messages, and unloaders of a run in each section.
    """

    def __init__(self, layout: TableLayout) -> None:
        facts, self._modes = EndFacts.of(layout), layout.entry_fields["mode"]
        self._bits = facts.load_bits, facts.unload_bits
        super().__init__(
            {
                "load_valid": In(2),
                "load_mode": In(2 * self._modes),
                "run_begins": In(1),
                "clear": In(1),
                "facts_row": In(sum(self._bits)),
                "entry": Out(self._modes),
                "known": Out(2),
                "load_facts": Out(2 * self._bits[0]),
                "unload_facts": Out(2 * self._bits[1]),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Ask for what is said of one message in a cycle, and of the other in the next."""
        m, valid = Module(), self.value("load_valid")
        odd, asked, section = (state(name=name) for name in ("odd", "asked", "section"))
        there, begins = state(2, name="there"), self.value("run_begins")
        row, (low, high) = self.value("facts_row"), self._bits
        m.d.sync += [odd.eq(~odd), asked.eq(valid.bit_select(odd, 1)), section.eq(section ^ begins)]
        m.d.comb += [
            self.entry.eq(self.value("load_mode").word_select(odd, self._modes)),
            # A command that has just gone may be followed by another.
            self.known.eq(there & valid),
        ]
        for k in range(2):
            comes = Signal(name=f"comes_{k}")
            loads, later = (Signal(bits, name=f"{name}_{k}", reset_less=True)
                            for name, bits in (("loads", low), ("later", high)))  # fmt: skip
            unloads = Signal(high, name=f"unloads_{k}", reset_less=True)
            m.d.comb += comes.eq(asked & (odd != k) & ~there[k])
            m.d.sync += there[k].eq(valid[k] & (there[k] | comes))
            with m.If(comes):
                m.d.sync += Cat(loads, later).eq(row)
            with m.If(begins & (section == k)):
                m.d.sync += unloads.eq(later)
            m.d.comb += [
                self.load_facts.word_select(k, low).eq(loads),
                self.unload_facts.word_select(k, high).eq(unloads),
            ]
        cleared(m, self.value("clear"), odd, asked, section, there)
        return m


class _LookedUpEnd(StreamEnd):
    """An end that is given what there is to know of a message, in place of the number of a form."""

    _fields: Mapping[str, int]
    _form: Value

    def _form_of(self, number: Value) -> Value:
        return self._said("facts", number, sum(self._fields.values()))

    def _fact(self, name: str, facts: Value | None = None) -> Value:
        """What is known of the message under way, or of another."""
        return fields_of(self._form if facts is None else facts, self._fields)[name]

    def _takes_part(self, number: Value) -> Value:
        return self._fact(self.passes, self._form_of(number))


class LoadedLoader(_LookedUpEnd, Loader):
    """Takes the messages of a node, and writes each packet where its destination says."""

    def __init__(self, shape: LoaderShape, layout: TableLayout) -> None:
        self._fields = layout.load_facts
        super().__init__(shape)

    def _position(self, form: Value) -> Value:
        return self._fact("position", form)

    def _named(self) -> Value:
        return self._fact("named")

    def _last_packet(self) -> Value:
        return self._fact("last_sent")

    def _unknown(self, dest: Value) -> Value:
        return dest > self._fact("last_sent")

    def _looked_up(self, m: Module, counter: WordCounter) -> Value:
        base = Signal(self.shape.address_bits, name="base", reset_less=True)
        first = self.value("tdest") * Const(self.shape.most_flits)
        m.d.sync += base.eq(Mux(self._named(), first, 0))
        return base


class LoadedUnloader(_LookedUpEnd, Unloader):
    """Sends on what a node has received: rows of a table follow one another."""

    def __init__(self, shape: UnloaderShape, layout: TableLayout) -> None:
        self._layout, self._fields = layout, layout.unload_facts
        super().__init__(shape)

    def _own_last(self, form: Value) -> Value:
        return self._fact("last_received", form)

    def _last_chunk(self) -> Value:
        return self._fact("last_chunk", self._form)

    def _known_by(
        self, m: Module, goes_on: Value, runs: RunQueue, packet: Value, ends: tuple[Value, Value]
    ) -> Value:
        """The first row of a packet."""
        ends_packet, finishes = ends
        first = self._fact("first_row", self._form_of(runs.following(finishes)))
        row = Signal(len(first), name="row_of_packet", reset_less=True)
        with m.If(goes_on | ~runs.there):
            following = row + Mux(ends_packet, self._last_chunk() + 1, 0)
            m.d.sync += row.eq(Mux(runs.there & ~finishes, following, first))
        return row

    def _key(self, chunk: Value, packet: Value, form: Value) -> Value:
        return (packet + chunk)[: self.shape.key_bits]

    def _held_row(self, m: Module, advance: Value) -> Value:
        """The row with the select bits of its memory."""
        found = fields_of(super()._held_row(m, advance), self._layout.unload_fields)
        memory, ports = found.pop("memory"), self._layout.frame.ports
        codes = [select_code(ports + 1, k) for k in range(ports + 1)]
        code = choose([Const(each, self.shape.memory_bits) for each in codes], memory)
        return Cat(memory == ports, code, *found.values())

    def _id(self, packet: Value, section: Value) -> Value:
        """Nothing yet, where rows have the origins."""
        if self._layout.frame.lists:
            return Const(0, 0)
        # Of several packets the first is of origin 0.
        return fitting(packet | self._fact("origin", self._form), self.shape.id_bits)

    def _in_row(self) -> Value:
        return self._row[-self.shape.id_bits :] if self._layout.frame.lists else Const(0, 0)


class LoadedStreamEndpoint(StreamEndpoint, LoadedEndpoint):
    """An endpoint of both sorts."""

    def elaborate(self, platform: object) -> Module:
        """Build memories, readers and what selects between them."""
        return _Builder(self).build()


class _Builder(LoadedEndpointBuilder, StreamEndpointBuilder):
    """Stores as loaded tables say, in sections of memories."""
