# amaranth: UnusedElaboratable=no
"""Streams of a loaded fabric: loaders and unloaders that take their facts from loaded tables.

The *loader* of a node takes packets from the user and writes them into memories; the *unloader*
reads received words from memories and sends them as packets to the user. Each memory is divided
into *sections*, one for each of some consecutive runs. An *entry* is one form of a mode, for one
root if runs choose the root. A *bank* is the number of one of the memories of a node.

The *facts* of a node say, for one entry, whether the node sends and receives, how many packets, and
where received packets lie. With fixed tables they are constants of each loader and unloader. Here
each node has two loaded tables instead:

- `facts_row` has the facts of each entry. `NodeFacts` reads them when the command of a run arrives.
  It keeps the facts for the loader until the run begins, and the facts for the unloader until the
  run has been unloaded.
- `unload_row` has the location of each received chunk, packet by packet.

Packets to send need no table: they lie in the send memory one after another, by destination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Member, Out
from typing_extensions import override

from ...rtl.arrays import Slice, Source
from ...rtl.core import Core
from ...rtl.memories import address_width, resize
from ...rtl.modules import Leaf
from ...rtl.netlist import Role
from ..streams.commands import CommandShape
from ..streams.control import StreamControl
from ..streams.engine import Engine, EngineShape
from ..streams.hardware import RUN_PORT_NETS, StreamTop
from ..streams.loader import Loader
from ..streams.options import Clocks
from ..streams.packets import OWN_BLOCK, Packets
from ..streams.run_facts import RunFacts
from ..streams.sections import Sections, tree_levels
from ..streams.unloader import Unloader
from ..streams.words import WordPosition, WordShape, add_clear, add_word_counter, make_register
from .layout import TableLayout
from .loader import LOAD_INPUTS, LOADED_CYCLES
from .requests import last_flit_of_block, start_choices

if TYPE_CHECKING:
    from .hardware import Loading

__all__ = ["LoadedStreamTop"]


@dataclass(frozen=True, eq=False)
class SentTable:
    """The locations of the packets that a node sends: memory and first address of each.

    They are computed from the destination, because packets to send lie in the send memory one after
    another. A loader uses this class in place of a `PacketTable`, a look-up table of locations.
    """

    layout: TableLayout

    rom_bits, depends_on_form = 0, False

    @property
    def address_bits(self) -> int:
        """Bits of the number of a packet; a packet has the number of its destination."""
        return address_width(self.layout.room.nodes)

    @property
    def address_source_bits(self) -> Sequence[int]:
        """Positions of those bits of a packet number on which the location depends: all of them."""
        return range(self.address_bits)

    def row_address(self, block: Value, packet: Value, form: Value) -> Value:
        """Return the number of a packet: `packet`, its destination.

        In some collectives, such as a gather, a node sends one packet without a destination. Its
        number is 0. `form` is the row of the loaded table `facts_row` that says if this is so.
        `block` is not used.
        """
        del block
        named = View(self.layout.load_facts, form)["named"]
        return resize(packet, self.address_bits) & named.replicate(self.address_bits)

    def read_field(self, name: str, address: Value, row: Value, form: Value) -> Value:
        """Return the memory (`name` is "bank") or the first address ("base") of a packet.

        `address` is the number of the packet. `row` and `form` are not used.
        """
        del row, form
        room = self.layout.room
        return Const(room.ports) if name == "bank" else address * room.part_words

    def is_disjoint(self, name: str, bits: int) -> bool:
        """Return True if an OR can replace the adder that computes the address of a word.

        The address is the sum of the first address of the packet and the number of the word. The OR
        has the same result if the first addresses are multiples of a power of two, and all word
        numbers are below this power. `bits` is the OR of all word numbers. `name` is not used: it
        names the field whose values are added to, here always the first address.
        """
        del name
        words = self.layout.room.part_words
        return words & (words - 1) == 0 and bits < words


@dataclass(frozen=True, eq=False)
class ReceivedTable:
    """The locations of the packets that a node has received, read from a loaded table.

    The table `unload_row` has the memory and the first address of each received chunk. An unloader
    uses this class in place of a `PacketTable`, a look-up table with fixed contents.
    """

    layout: TableLayout

    depends_on_form, address_source_bits = False, ()

    @property
    def address_bits(self) -> int:
        """Bits of a row number of the loaded table `unload_row`."""
        return address_width(self.layout.room.sizes.blocks)

    @property
    def rom_bits(self) -> int:
        """Bits in each row of the loaded table `unload_row`."""
        return int(self.layout.packet_row_fields.size)

    def read_field(self, name: str, address: Value, row: Value, form: Value) -> Value:
        """Return a field of `row`, a row of the loaded table `unload_row`, which is for one chunk.

        For the name "bank" the field is the memory of the chunk, for "base" its first address. For
        "own" the result is high if the node has sent the chunk to itself. `address` and `form` are
        not used.
        """
        del address, form
        found = View(self.layout.packet_row_fields, row)
        if name == "own":
            return found["memory"] == self.layout.room.ports
        value: Value = found["memory" if name == "bank" else name]
        return value

    def is_disjoint(self, name: str, bits: int) -> bool:
        """Return False: an OR cannot replace the adder that computes the address of a word.

        Why: a packet may begin at any address. The parameters `name` and `bits` are not used.
        """
        del name, bits
        return False


@dataclass(frozen=True, eq=False)
class TableEngineShape(EngineShape):
    """Parameters of the loaders, or of the unloaders, of a loaded fabric.

    These modules move packets between the user and the memories of nodes. They read the facts of
    the present run (such as the number of packets) from loaded tables.
    """

    layout: TableLayout

    has_idle_senders, has_unequal_packets, position_bits = True, True, 0  # type: ignore[assignment]

    @cached_property
    def packet_table(self) -> Any:
        """The locations (memory, first address) of packets to load, or to unload."""
        return (SentTable if self.verb == "load" else ReceivedTable)(self.layout)

    @cached_property
    def word_shape(self) -> WordShape:
        """The division of a packet into chunks, as the hardware has to support it.

        For loaders a packet is one chunk. Unloaders divide a packet into any number of chunks up to
        the capacity of the fabric, word by word in turn; a loaded table says into how many.
        """
        most, beat = self.layout.room.part_words // self.beat, self.beat
        several = (1, self.layout.room.sizes.chunks) if self.verb == "unload" else (1,)
        pitch = (beat,) * len(several)
        return WordShape(
            most=most, block=(most,) * len(several), in_turn=True, chunks=several, pitch=pitch
        )


class TableEngine(Engine):
    """A loader or unloader whose inputs give it the facts of a run, from loaded tables.

    A fact is, for example, the number of packets of the node. With fixed tables, the facts are
    constants inside of the module.
    """

    #: Inputs that an engine has with fixed tables, for constants of each form. They are left out.
    CONSTANTS = ("sends", "receives", "position", "own_last", "own_numbers")

    def __init__(self, shape: TableEngineShape, signature: Mapping[str, Member]) -> None:
        verb, facts = shape.verb, shape.facts
        kept = {name: each for name, each in signature.items()
                if name not in (*self.CONSTANTS, f"{verb}_mode", f"{verb}_root")}  # fmt: skip
        self._layout = facts.looked_up[verb]
        kept |= {name: In(bits) for name, bits in facts.engine_input_widths(verb).items()}
        super().__init__(shape, kept | ({"rests": Out(1)} if verb == "unload" else {}))

    @override
    def _form_of(self, number: Value) -> Value:
        """Return all facts of a run, as bits, given the lowest bits of the number of the run.

        The facts say, for example, whether the node sends and how many packets.
        """
        return self._run_choice("facts", number, self._layout.size)

    @override
    def _form_field(self, name: str, form: Value) -> Value:
        return View(self._layout, form)[name]

    @override
    def _has_packets(self, number: Value) -> Value:
        return self._form_field(self.passes, self._form_of(number))


class LoadedLoader(Loader, TableEngine):
    """The loader of a node of a loaded fabric: it writes packets of the user into the send memory.

    Members
    -------
    load_facts : In
        Facts of the node (such as the number of packets) for the next two messages: first for the
        message with an even number, then for the message with an odd number.
    """

    @override
    def _last_packet(self) -> Value:
        return self._form_field("last_sent", self._current_form)

    @override
    def _has_destinations(self) -> Value:
        return self._form_field("named", self._current_form)

    @override
    def _is_out_of_range(self, dest: Value) -> Value:
        return dest > self._last_packet()


class LoadedUnloader(Unloader, TableEngine):
    """The unloader of a node of a loaded fabric: it sends received words to the user as packets.

    Members
    -------
    unload_facts : In
        Facts of the node (such as the number of packets) for the last run in each section of the
        memories. The even runs use one section, the odd runs the other.
    rests : Out(1)
        High if the packets of all runs so far have been unloaded.
    """

    def __init__(self, shape: TableEngineShape) -> None:
        self._room, self._packet_row = shape.layout.room, shape.layout.packet_row_fields
        super().__init__(shape)

    @override
    def _add_word_counter(self, m: Module, beat: Value, restart: Value) -> WordPosition:
        last = self._form_field("last_chunk", self._current_form)
        return add_word_counter(
            m,
            self.shape.word_shape,
            self._current_form,
            beat=beat,
            restart=restart,
            last_chunk=last,
        )

    @override
    def _count_packets(
        self, m: Module, goes_on: Value, ends_packet: Value, following: Value
    ) -> tuple[Value, Value, Value]:
        # The rows of the packets of a run are consecutive, `last_chunk + 1` for each packet.
        first = self._form_field("first_row", self._form_of(following))
        self._row = row = Signal(len(first), name="row_of_packet", reset_less=True)
        with m.If(goes_on | ~self._there):
            step = Mux(ends_packet, self._form_field("last_chunk", self._current_form) + 1, 0)
            m.d.sync += row.eq(Mux(self._there & ~self._finishes, row + step, first))
        return super()._count_packets(m, goes_on, ends_packet, following)

    @override
    def _row_address(self, counter: WordPosition, packet: Value) -> Value:
        return (self._row + counter.chunk)[: len(self._row)]

    @override
    def _packet_origin(self, packet: Value) -> Value:
        if self._room.lists:
            return Const(0, 0)
        # With several packets the fact `origin` is 0; with one, `packet` is 0. So OR is enough.
        return resize(
            packet | self._form_field("origin", self._current_form), self.shape.stream_id_bits
        )

    @override
    def _origin_from_row(self, row: Value) -> Value:
        if not self._room.lists:
            return Const(0, 0)
        origin: Value = View(self._packet_row, row)["origin"]
        return origin

    @override
    def _drive_rests(self, m: Module, claimed: Value) -> None:
        m.d.comb += self.rests.eq(claimed == 0)


class NodeFacts(Leaf):
    """Hardware that reads the facts of a node for waiting commands from a loaded table.

    The table is `facts_row`. The *facts* say whether the node sends and receives in a run, and how
    many packets. The table has a row for each *entry*, which is one form of a mode, for one root.
    At most two commands wait, one with an even and one with an odd number. The table is read for
    the even command in one cycle, and for the odd one in the next.

    Parameters
    ----------
    facts : RunFacts
        Bit fields of the facts, and the number of sections.

    Members
    -------
    load_valid, load_mode : In
        Two fields each, for the even and the odd command. `load_valid` is high if the command
        waits, and `load_mode` is the number of its entry.
    run_begins : In(1)
        High in the cycle in which a run begins.
    clear : In(1)
        High to forget all commands and runs.
    facts_row : In
        Row of the table at the address `entry` of the cycle before.
    entry : Out
        Address of the table: the entry of the even or the odd command.
    known : Out(2)
        Two bits: high if the facts of the even, or the odd, command have been read.
    load_facts : Out
        Facts for the loader, of the even and of the odd command.
    unload_facts : Out
        Facts for the unloader, of the run in each section of the memories.
    """

    def __init__(self, facts: RunFacts) -> None:
        loads, unloads = facts.looked_up["load"], facts.looked_up["unload"]
        self._modes, self._bits = facts.form_bits, (loads.size, unloads.size)
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
        """Build the reads for the even and the odd command in turn, and two result registers."""
        m, valid = Module(), self.input_value("load_valid")
        odd, asked, section = (make_register(name=name) for name in ("odd", "asked", "section"))
        there, begins = make_register(2, name="there"), self.input_value("run_begins")
        row, (low, high) = self.input_value("facts_row"), self._bits
        m.d.sync += [odd.eq(~odd), asked.eq(valid.bit_select(odd, 1)), section.eq(section ^ begins)]
        m.d.comb += [
            self.entry.eq(self.input_value("load_mode").word_select(odd, self._modes)),
            self.known.eq(there),
        ]
        for k in range(2):
            comes = Signal(name=f"comes_{k}")
            loads, later = (Signal(bits, name=f"{name}_{k}", reset_less=True)
                            for name, bits in (("loads", low), ("later", high)))  # fmt: skip
            unloads = Signal(high, name=f"unloads_{k}", reset_less=True)
            m.d.comb += comes.eq(asked & (odd != k))
            m.d.sync += there[k].eq(valid[k] & (there[k] | comes))
            with m.If(comes):
                m.d.sync += Cat(loads, later).eq(row)
            with m.If(begins & (section == k)):
                m.d.sync += unloads.eq(later)
            m.d.comb += [
                self.load_facts.word_select(k, low).eq(loads),
                self.unload_facts.word_select(k, high).eq(unloads),
            ]
        add_clear(m, self.input_value("clear"), odd, asked, section, there)
        return m


class LoadedControl(StreamControl):
    """The control of the streams of a loaded fabric: it starts runs when all nodes are ready.

    Members
    -------
    form_word : In
        Row of the loaded table `modes`: the constants of the form that the run executes, such as
        its number of chunks. The row is valid from the cycle after the start.
    """

    def __init__(self, layout: TableLayout, program: Any, round_trip: int, shape: Any) -> None:
        self._layout = layout
        others = {"form_word": In(layout.mode_fields.size)}
        super().__init__(program, round_trip, shape, flits=layout.room.flits, others=others)

    @override
    def _last_flit(self, m: Module, go: Value) -> Value:
        form = View(self._layout.mode_fields, self.input_value("form_word"))
        return last_flit_of_block(m, self._layout, form, self.input_value("last"), go)


class LoadedStreamTop(StreamTop):
    """Builder of a loaded fabric with streams: adds stream modules and tables to a netlist."""

    engine_classes = LoadedLoader, LoadedUnloader
    request_net = "message_valid"

    def __init__(
        self, loading: Loading, core: Core, clocks: Clocks, timeout: int, *, has_run_port: bool
    ) -> None:
        self._loading, self._layout = loading, loading.layout
        self._has_run_port = has_run_port
        super().__init__(core, clocks, timeout)

    @override
    def _plan_facts(self) -> RunFacts:
        layout = self._layout
        return RunFacts(
            commanded=True, form_bits=layout.entry_bits, root_bits=0, position_bits=0,
            sections=Sections(),
            looked_up={"load": layout.load_facts, "unload": layout.unload_facts},
        )  # fmt: skip

    @override
    def _plan_engines(self) -> tuple[EngineShape, EngineShape]:
        room = self._layout.room
        words, blocks = room.part_words // room.beat, np.zeros((room.nodes, room.nodes, 1), int)
        sent = Packets(named=True, bank=blocks, base=blocks, words=words)
        received = Packets(bank=np.full_like(blocks, OWN_BLOCK), base=blocks, words=words)
        of_all = self._facts, True, self._layout
        return (
            TableEngineShape("load", self._core, (sent,), *of_all),
            TableEngineShape("unload", self._core, (received,), *of_all),
        )

    @override
    def _command_shape(self) -> CommandShape:
        room = self._layout.room
        return CommandShape(
            start_choices(room),
            self._facts,
            room.flits,
            starts=self._layout.start_fields,
            root_bits=address_width(room.nodes),
            settled=LOADED_CYCLES,
        )

    @override
    def _command_nets(self) -> dict[str, str]:
        """Return other net names for signals of `Commands` that would clash with fabric inputs.

        By default `Commands` drives the words of images, and the result is empty. With a run port,
        the words of images come from a bus, through inputs of the fabric, which this method adds.
        So the outputs of `Commands` get other names, such as ``command_load_we``.
        """
        if not self._has_run_port:
            return {}
        for name, bits in LOAD_INPUTS.items():
            self._build.add_input(name, bits)
        return {name: f"command_{name}" for name in LOAD_INPUTS}

    @override
    def _make_control(self, round_trip: int) -> Callable[[], StreamControl]:
        return partial(LoadedControl, self._layout, self._program, round_trip, self.loader)

    @override
    def _constant_inputs(self, leaf: Engine) -> dict[str, Sequence[Source]]:
        """Return the source of each input of a loader or unloader that its own node drives.

        `leaf` is the loader or unloader; the keys are names of its inputs. For example, the input
        `load_facts` at node k comes from the net ``load_facts_k``.
        """
        nodes, members = self._nodes, leaf.signature.members
        nets = {"load_valid": "known_{}", "load_facts": "load_facts_{}",
                "unload_facts": "unload_facts_{}", "row": "unload_row_{}"}  # fmt: skip
        return {
            name: (Slice(net, nodes, 0, members[name].shape),)
            for name, net in nets.items()
            if name in members
        }

    @override
    def _idle_nets(self) -> dict[str, int]:
        # The node tables are read at these addresses.
        rows = {name: rows for name, (rows, _) in self._layout.stream_tables.items()}
        addresses = {"unload_key": rows["unload_row"], "entry": rows["facts_row"]}
        return super()._idle_nets() | {
            net: address_width(count) for net, count in addresses.items()
        }

    @override
    def _add_core(self) -> list[tuple[str, int]]:
        build, loading = self._build, self._loading
        rest = f"rest_{tree_levels(len(self._nodes)) - 1}_0" if self._has_run_port else ""
        loading.add_loader(build, "image_loader", "last_entry", rest)
        self._add_node_facts()
        return self._core.add_modules(RUN_PORT_NETS, partial(loading.add_node_tables, self._core))

    def _add_node_facts(self) -> None:
        """Add a `NodeFacts` for each node, which reads the node's facts of a run from a table."""
        build, nodes = self._build, self._nodes
        near = build.distribution.group_registers
        make = partial(NodeFacts, self._facts)
        members = make().signature.members
        build.add_module("node_facts", make, role=Role.STREAM)
        inputs: dict[str, Sequence[Source]] = {
            name: (near(name, nodes),) for name in ("load_mode", "run_begins", "clear")
        }
        inputs["load_valid"] = (near(self.request_net, nodes),)
        inputs["facts_row"] = (Slice("facts_row_{}", nodes, 0, members["facts_row"].shape),)
        outputs = {name: (f"{name}_{{}}", members[name].shape)
                   for name in ("entry", "known", "load_facts", "unload_facts")}  # fmt: skip
        build.add_array("node_facts_at_{}", "node_facts", nodes, inputs=inputs, outputs=outputs)
