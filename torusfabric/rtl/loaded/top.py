# amaranth: UnusedElaboratable=no
"""The tops of fabrics whose tables are loaded: behind a host port, and with streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...program import Program
from ...program.frame import Frame
from ...topology import IntArray
from .. import tops
from ..arrays import Slice, Source
from ..fabric_builder import FabricBuilder, Top
from ..host import Host, HostView, HostWrites
from ..memories import address_width
from ..modules import Leaf
from ..netlist import Fixed, Part, Parts, Role
from ..node_parts import add_endpoints
from ..place import RowTables
from ..run_choices import RunChoices
from ..run_length import Lengths
from ..streams import nodes as streams
from ..streams.commands import Commands
from ..streams.endpoint import StreamEnds, sectioned
from ..streams.ports import Clocks
from ..tops import Built, add_single
from .host import BlockLocator, loaded_layout
from .image import Image
from .image_loader import WORDS, ImageLoader
from .layout import TableLayout
from .node_tables import Bits
from .sequencer import LoadedSequencer
from .stream_ends import NodeFacts, command_shape, stream_ends
from .table import LoadedTable, part_bits

__all__ = ["LoadedBuilder", "add_loaded_stream_top", "add_loaded_top"]

#: What is shown of what is loaded.
SHOWN = ("loaded", "loaded_program", "modes")

#: What nodes look up of runs, by the inputs that ends have for it.
LOOKED_UP = {"load_valid": "known", "load_facts": "load_facts", "unload_facts": "unload_facts",
             "row": "unload_row"}  # fmt: skip


class LoadedBuilder(FabricBuilder):
    """Takes the parts of a fabric whose tables are loaded.

    Parameters
    ----------
    image : Image or None
        What is there at first.
    """

    def __init__(self, program: Program, frame: Frame, width: int, image: Image | None) -> None:
        self.frame, self.layout, self.image = frame, TableLayout(frame), image
        top = Top.STREAM if frame.streams else Top.HOST
        super().__init__(program, self.layout.of_node.placement(program), width, top)
        self._contents = image.contents if image else [[] for _ in self.layout.tables]
        self._known: dict[object, str] = {}

    @cached_property
    def choices(self) -> RunChoices:
        """What is chosen at the start of a run."""
        frame, unit = self.layout.frame, self.operator_unit
        lengths = Lengths(frame.flits, (1,) * frame.entries)
        # Which modes have a choice of it their entries say; with streams commands find these.
        chosen = frame.roots and not frame.streams
        root = 1 << address_width(frame.nodes) if chosen else None
        several = unit if unit and unit.bits else None
        return RunChoices((root,) * frame.entries, (True,) * frame.entries, lengths, several)

    def _add_table(
        self, name: str, number: int, addresses: Sequence[Parts], bus: Mapping[str, Parts],
        parts: Mapping[str, tuple[Sequence[Bits], int]], net: str, node: int | None = None,
    ) -> None:  # fmt: skip
        """Add tables of one owner, which shows all rows if it is not asked for one.

        Those of the same contents are of one module. Nets have names of the parts that they show.
        """
        whole = not addresses
        tables, given = self.layout.tables[number], self.layout.bus
        contents = tuple(tuple(max(row, 0) for row in rows) for rows in self._contents[number])
        key = tables, contents, tuple(parts.items()), whole
        module = self._known.setdefault(key, f"table_{name}" if contents else f"empty_{name}")
        make = partial(LoadedTable, tables, given, contents, parts, whole=whole)
        self.add_module(module, make, role=Role.TABLE)
        self.add(
            f"the_table_{name}",
            module,
            inputs={
                "number": (Fixed(number, given["load_table"]),),
                **{f"address_{k}": address for k, address in enumerate(addresses)},
                **bus,
            },
            outputs={
                part: (net.format(part), part_bits(runs)) for part, (runs, _) in parts.items()
            },
            node=node,
        )

    def add_row_roms(
        self, name: str, nodes: IntArray, row: str, bits: int, tables: RowTables
    ) -> None:
        """Tables that are loaded, where ROMs would be: one for all that a node looks up."""
        if name != "row":
            return
        layout, near = self.layout, self.distribution.near
        asked_here = {"unload_key": layout.unload_facts["first_row"].width,
                      "entry": layout.entry_bits} if layout.frame.streams else {}  # fmt: skip
        for node in nodes.tolist():
            bus = {name: near(name, node) for name in layout.bus}
            asked: list[Parts] = [near(name, node) for name in layout.named]
            asked += [(Part(f"{name}_{node}", 0, bits),) for name, bits in asked_here.items()]
            net = f"{{}}_{node}"
            self._add_table(f"node_{node}", node, asked, bus, layout.node_parts, net, node)

    def add_loader(self, name: str, digest: int) -> None:
        """Add what takes the words of images, and the tables that there are once."""
        layout = self.layout
        there = self.image.there if self.image else (0, 0, 0)
        make = partial(ImageLoader, digest, layout.bus, layout.frame.entries, there)
        bus = add_single(self, name, Role.LOADER, make)
        shared: dict[str, Parts] = {member: bus[member] for member in layout.bus}
        shared["load_every"] = (Fixed(0, 1),)
        for number, (table, (rows, bits)) in enumerate(
            layout.single_tables.items(), layout.frame.nodes
        ):
            whole, one = table == "starts", table.removesuffix("s")
            width, net = (rows * bits, table) if whole else (bits, f"{one}_word")
            asked = [] if whole else [(Part(f"{one}_address", 0, address_width(rows)),)]
            self._add_table(table, number, asked, shared, {"row": (((0, width),), 0)}, net)

    def add_sequencer(self, soon: int = 0, **how: Any) -> None:
        """Add the sequencer."""
        make = partial(LoadedSequencer, self.layout, self.choices, soon=soon)
        self.sequenced.update(add_single(self, "sequencer", Role.SEQUENCER, make, **how))


def add_loaded_top(build: LoadedBuilder, digest: int) -> Built:
    """One memory-mapped port serves all nodes; another takes what is loaded."""
    layout, ports = build.layout, build.ports
    tops.add_starts(build)
    for name, bits in WORDS.items():
        build.add_input(name, bits)
    build.add_loader("loader", digest)
    answer, addresses = build.placement.endpoints.answer, loaded_layout(layout.frame)
    host = lambda: Host(
        [HostView(addresses, BlockLocator(layout), tuple(range(ports + 1)))],
        [HostWrites(addresses, None)],
        width=build.width, address_bits=layout.of_node.base_bits, answer=answer,
    )  # fmt: skip
    latency = tops.add_host_port(build, host)
    build.add_sequencer()
    routers = tops.add_inside(build, add_endpoints)
    tops.add_status(build)
    for name in SHOWN:
        build.add_output(name, build.nets[name])
    return Built(routers, latency)


def add_loaded_stream_top(build: LoadedBuilder, digest: int, clocks: Clocks, timeout: int) -> Built:
    """Every node has streams, and those of commands take what is loaded."""
    ends = stream_ends(build.layout, build.width)

    def add_control() -> None:
        commands = partial(Commands, command_shape(build.layout, build.choices))
        streams.add_control(build, ends.loader, commands, renamed={"load_valid": "message_valid"})
        build.add_loader("image_loader", digest)
        build.add_sequencer(streams.SOON, renamed=streams.RENAMED)
        for name in SHOWN:
            build.add_output(name, build.nets[name])

    return streams.add_around(build, clocks, timeout, add_control, partial(_add_nodes, ends=ends))


def _add_nodes(build: FabricBuilder, inner: str, ends: StreamEnds) -> None:
    """Add what nodes look up, loaders, unloaders and endpoints, and the tree."""
    every, near = np.arange(build.nodes), build.distribution.near_each
    make_facts = partial(NodeFacts, ends.loader.facts)
    members = make_facts().signature.members
    build.add_module("node_facts", make_facts, role=Role.STREAM)
    inputs = {name: (near(name, every),) for name in ("load_mode", "run_begins", "clear")}
    inputs["load_valid"] = (near("message_valid", every),)
    row = (Slice("facts_row_{}", every, 0, members["facts_row"].shape),)
    outputs = {name: (f"{name}_{{}}", members[name].shape)
               for name in ("entry", "known", "load_facts", "unload_facts")}  # fmt: skip
    build.add_array("node_facts_at_{}", "node_facts", every, inputs=inputs | {"facts_row": row},
                    outputs=outputs)  # fmt: skip

    def given(leaf: Leaf) -> dict[str, Sequence[Source]]:
        needed = leaf.signature.members
        return {name: (Slice(f"{net}_{{}}", every, 0, needed[name].shape),)
                for name, net in LOOKED_UP.items() if name in needed}  # fmt: skip

    (shape,) = build.placement.endpoints.shapes
    streams.add_nodes(build, inner, ends, [(sectioned(shape), True, every)], given)
