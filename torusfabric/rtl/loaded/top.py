# amaranth: UnusedElaboratable=no
"""The tops of fabrics whose tables are loaded: behind a host port, and with streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...program.frame import Frame
from ...topology import IntArray
from ..arrays import Slice, Source
from ..fabric_builder import FabricBuilder
from ..finders import DirectFinder
from ..host import Host, add_host_port
from ..memories import address_width
from ..modules import Leaf
from ..netlist import Fixed, Part, Parts, Role, add_single
from ..node_parts import add_endpoints
from ..place import RowTables
from ..streams import nodes as streams
from ..streams.commands import Commands
from ..streams.endpoint import StreamEnds, sectioned
from ..streams.ports import Clocks
from ..top import Built
from ..tops import add_inside
from .host import BlockFinder, loaded_layout
from .image import Image
from .image_loader import WORDS, ImageLoader
from .layout import TableLayout
from .node_tables import Bits
from .sequencer import LoadedSequencer
from .stream_ends import NodeFacts, command_shape, stream_ends
from .table import LoadedTable, part_bits

__all__ = ["LoadedTables", "add_loaded_stream_top", "add_loaded_top"]

#: What is shown of what is loaded.
SHOWN = ("loaded", "loaded_program", "modes")

#: What nodes look up of runs, by the inputs that ends have for it.
LOOKED_UP = {"load_valid": "known", "load_facts": "load_facts", "unload_facts": "unload_facts",
             "row": "unload_row"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class LoadedTables:
    """The tables of a fabric that are loaded.

    Parameters
    ----------
    image : Image or None
        What is there at first.
    """

    frame: Frame
    image: Image | None

    @cached_property
    def layout(self) -> TableLayout:
        """Which bits are what."""
        return TableLayout(self.frame)

    def contents(self, number: int) -> tuple[tuple[int, ...], ...]:
        """The first rows of tables of one owner."""
        tables = self.image.contents[number] if self.image else []
        return tuple(tuple(max(row, 0) for row in rows) for rows in tables)

    def add_rows(
        self, build: FabricBuilder, name: str, nodes: IntArray, row: str, bits: int,
        tables: RowTables,
    ) -> None:  # fmt: skip
        """Add the tables of nodes where ROMs would be: one module for those of equal contents.

        What endpoints look up, and routers and operators do, lies in one table.
        """
        if name != "row":
            return
        layout, near, parts = self.layout, build.distribution.near, self.layout.node_parts
        asked_here = {"unload_key": layout.unload_facts["first_row"].width,
                      "entry": layout.entry_bits} if self.frame.streams else {}  # fmt: skip
        modules = dict[tuple[tuple[int, ...], ...], str]()
        for node in nodes.tolist():
            contents = self.contents(node)
            if contents not in modules:
                modules[contents] = self._add_module(build, f"node_{node}", node, parts)
            bus = {name: near(name, node) for name in layout.bus}
            asked: list[Parts] = [near(name, node) for name in layout.named]
            asked += [(Part(f"{name}_{node}", 0, bits),) for name, bits in asked_here.items()]
            build.add(
                f"the_table_node_{node}",
                modules[contents],
                inputs=self._inputs(node, asked, bus),
                outputs={part: (f"{part}_{node}", part_bits(runs))
                         for part, (runs, _) in parts.items()},
                node=node,
            )  # fmt: skip

    def add_loader(self, build: FabricBuilder, name: str) -> None:
        """Add what takes the words of images, and the tables that there are once."""
        layout, frame = self.layout, self.frame
        there = self.image.there if self.image else (0, 0, 0)
        make = partial(ImageLoader, frame.digest(build.width), layout.bus, frame.entries, there)
        bus: Mapping[str, Parts] = add_single(build, name, Role.LOADER, make)
        bus = {**{member: bus[member] for member in layout.bus}, "load_every": (Fixed(0, 1),)}
        for number, (table, (rows, bits)) in enumerate(layout.single_tables.items(), frame.nodes):
            whole, one = table == "starts", table.removesuffix("s")
            width, net = (rows * bits, table) if whole else (bits, f"{one}_word")
            asked = [] if whole else [(Part(f"{one}_address", 0, address_width(rows)),)]
            module = self._add_module(
                build, table, number, {"row": (((0, width),), 0)}, whole=whole
            )
            inputs = self._inputs(number, asked, bus)
            build.add(f"the_table_{table}", module, inputs=inputs, outputs={"row": (net, width)})

    def _add_module(
        self, build: FabricBuilder, name: str, number: int,
        parts: Mapping[str, tuple[Sequence[Bits], int]], *, whole: bool = False,
    ) -> str:  # fmt: skip
        """Declare the tables of one owner; the name of the module."""
        tables, contents = self.layout.tables[number], self.contents(number)
        module = f"table_{name}" if contents else f"empty_{name}"
        make = partial(LoadedTable, tables, self.layout.bus, contents, parts, whole=whole)
        build.add_module(module, make, role=Role.TABLE)
        return module

    def _inputs(
        self, number: int, addresses: Sequence[Parts], bus: Mapping[str, Parts]
    ) -> dict[str, Parts]:
        """What the tables of one owner are given."""
        own: dict[str, Parts] = {"number": (Fixed(number, self.layout.bus["load_table"]),)}
        return own | {f"address_{k}": each for k, each in enumerate(addresses)} | {**bus}

    def add_sequencer(self, build: FabricBuilder, soon: int = 0, **how: Any) -> None:
        """Add the sequencer."""
        make = partial(LoadedSequencer, self.layout, build.choices, soon=soon, resets=build.resets)
        build.sequenced.update(add_single(build, "sequencer", Role.SEQUENCER, make, **how))


def add_loaded_top(build: FabricBuilder, tables: LoadedTables) -> Built:
    """One memory-mapped port serves all nodes; another takes what is loaded."""
    layout = tables.layout
    for name, bits in {"start": 1, **build.choices.inputs}.items():
        build.add_input(name, bits)
    if build.resets:
        build.add_input("reset_run")
    for name, bits in WORDS.items():
        build.add_input(name, bits)
    tables.add_loader(build, "loader")
    answer, addresses = build.placement.endpoints.answer, loaded_layout(layout.frame)
    host = lambda: Host(
        [BlockFinder(addresses, layout)],
        [DirectFinder(addresses, by_chunk=False)],
        width=build.width, address_bits=layout.of_node.base_bits, answer=answer,
    )  # fmt: skip
    latency = add_host_port(build, host)
    tables.add_sequencer(build)
    routers = add_inside(build, add_endpoints)
    for name in ("busy", "done", "cycles", "error", "round", *SHOWN):
        build.add_output(name, build.nets[name])
    return Built(routers, latency)


def add_loaded_stream_top(
    build: FabricBuilder, tables: LoadedTables, clocks: Clocks, timeout: int
) -> Built:
    """Every node has streams, and those of commands take what is loaded."""
    ends = stream_ends(tables.layout, build.width)
    commands = partial(Commands, command_shape(tables.layout, build.choices))
    streams.add_ports(build, clocks)
    streams.add_control(build, ends.loader, commands, renamed={"load_valid": "message_valid"})
    tables.add_loader(build, "image_loader")
    tables.add_sequencer(build, streams.SOON, renamed=streams.RENAMED)
    for name in SHOWN:
        build.add_output(name, build.nets[name])
    asked, nodes = build.whole("message_valid"), partial(_add_nodes, ends=ends)
    return streams.add_around(build, clocks, timeout, nodes, asked)


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
