# amaranth: UnusedElaboratable=no
"""The host top of a fabric whose tables are loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ...program import Program
from ...program.frame import Frame
from ...topology import IntArray
from .. import tops
from ..endpoint import Endpoint, EndpointSettings
from ..endpoint_shape import EndpointShape
from ..fabric_builder import FabricBuilder, Top
from ..host import Host, HostView, HostWrites
from ..memories import address_width
from ..netlist import Fixed, Part, Parts, Role
from ..node_parts import add_endpoints
from ..operator_unit import OperatorUnit
from ..place import RowTables
from ..run_choices import RunChoices
from ..run_length import Lengths
from ..tops import Built, add_single
from .endpoint import LoadedEndpoint
from .host import BlockLocator, LoadedHostLayout
from .image import Image
from .layout import TableLayout
from .loader import Loader, There
from .node_tables import Bits
from .sequencer import FOR_HOST, LoadedSequencer
from .table import LoadedTable, part_bits

__all__ = ["LoadedBuilder", "add_loaded_top"]


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
        self.contents = image.contents if image else [[] for _ in self.layout.tables]
        self._known: dict[object, str] = {}

    @property
    def endpoint(self) -> Callable[[EndpointShape, EndpointSettings], Endpoint]:
        """What endpoints are."""
        links = self.frame.topology.longest_link
        return partial(LoadedEndpoint, late=self.frame.late, links=links)

    @property
    def operator_unit(self) -> OperatorUnit | None:
        """What combines words, where anything can, whatever is loaded."""
        if not self.frame.operators:
            return None
        return OperatorUnit(self.frame.parsed_operators())

    @cached_property
    def choices(self) -> RunChoices:
        """What is chosen at the start of a run."""
        frame, unit = self.frame, self.operator_unit
        several = unit if unit and unit.bits else None
        lengths = Lengths(frame.flits, (1,) * frame.entries)
        # Which modes have a choice of it their entries say; with streams commands find these.
        chosen = frame.roots and not frame.streams
        root = 1 << address_width(frame.nodes) if chosen else None
        return RunChoices((root,) * frame.entries, (True,) * frame.entries, lengths, several)

    def add_table(
        self, name: str, number: int, addresses: Sequence[Parts], bus: dict[str, Parts],
        parts: Mapping[str, tuple[Sequence[Bits], int]], nets: dict[str, str],
        node: int | None = None,
    ) -> None:  # fmt: skip
        """Add tables of one owner, which shows all rows if it is not asked for one.

        Those of the same contents are of one module.
        """
        whole = not addresses
        tables, given = self.layout.tables[number], self.layout.bus
        contents = tuple(tuple(max(row, 0) for row in rows) for rows in self.contents[number])
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
            outputs={part: (nets[part], part_bits(runs)) for part, (runs, _) in parts.items()},
            node=node,
        )

    def add_row_roms(
        self, name: str, nodes: IntArray, row: str, bits: int, tables: RowTables
    ) -> None:
        """Tables that are loaded, where ROMs would be: one for all that a node looks up."""
        if name != "row":
            return
        layout, near = self.layout, self.distribution.near
        parts = layout.node_parts
        names = [name for name in layout.row_fields if name.startswith("named_")]
        for node in nodes.tolist():
            nets = {part: f"{part}_{node}" for part in parts}
            bus = {name: near(name, node) for name in layout.bus}
            asked = [near(name, node) for name in names]
            if self.frame.streams:
                fields = {"unload_key": layout.facts["first_row"], "entry": self._mode_bits}
                asked += [(Part(f"{name}_{node}", 0, bits),) for name, bits in fields.items()]
            self.add_table(f"node_{node}", node, asked, bus, parts, nets, node)

    @property
    def _mode_bits(self) -> int:
        """Bits of the number of an entry."""
        return address_width(self.frame.entries)

    def add_loader(self, name: str, digest: int, words: Mapping[str, Parts]) -> dict[str, Parts]:
        """What takes the words of images; what it gives, by name."""
        layout, frame = self.layout, self.frame
        there = self.image.there if self.image else There()
        make = partial(Loader, digest, layout.bus, frame.entries, there)
        runs = {"busy": (Part("busy", 0, 1),), "run_form": (Part("run_form", 0, self._mode_bits),)}
        return {**add_single(self, name, Role.LOADER, make, {**words, **runs})}

    def add_single_tables(self, given: Mapping[str, Parts]) -> dict[str, Parts]:
        """The tables that there are once, by what the loader gives; rows and all starts."""
        layout = self.layout
        bus: dict[str, Parts] = {name: given[name] for name in layout.bus}
        bus |= {"load_every": (Fixed(0, 1),)}
        shown: dict[str, Parts] = {}
        for number, (name, (rows, bits)) in enumerate(
            layout.single_tables.items(), self.frame.nodes
        ):
            whole, one = name == "starts", name.removesuffix("s")
            width = rows * bits if whole else bits
            net = {"rows": "row_word", "modes": "mode_word", "blocks": "block"}.get(name, name)
            address = [] if whole else [(Part(f"{one}_address", 0, address_width(rows)),)]
            runs = {"row": (((0, width),), 0)}
            self.add_table(name, number, address, bus, runs, {"row": net})
            shown[net] = (Part(net, 0, width),)
        return shown

    def add_loaded_sequencer(self, given: Mapping[str, Parts], **how: Any) -> None:
        """The sequencer, by what the tables and the loader give."""
        soon = how.pop("soon", 0)
        make = partial(LoadedSequencer, self.layout, self.choices, soon=soon)
        needed = make().signature.members
        inputs = {name: parts for name, parts in given.items() if name in needed}
        tops.add_sequencer(self, inputs, make=make, **how)


def add_loaded_top(build: LoadedBuilder, digest: int) -> Built:
    """One memory-mapped port serves all nodes; another takes what is loaded."""
    layout, frame = build.layout, build.frame
    tops.add_starts(build)
    words: dict[str, Parts] = {
        name: build.add_input(name, bits)
        for name, bits in {"load_we": 1, "load_first": 1, "load_data": 32}.items()
    }
    given = build.add_loader("loader", digest, words)
    fields = {name: layout.mode_fields[name] for name in FOR_HOST} | {"block": layout.block_bits}
    answer = build.placement.endpoints.answer
    addresses = LoadedHostLayout(frame)
    host = lambda: Host(
        [HostView(addresses, BlockLocator(layout), tuple(range(frame.ports + 1)))],
        [HostWrites(addresses, None)],
        width=build.width, address_bits=layout.of_node.base_bits, answer=answer,
    )  # fmt: skip
    asked = {name: (Part(name, 0, bits),) for name, bits in fields.items()}
    latency = tops.add_host_port(build, host, asked)
    build.add_loaded_sequencer(given | build.add_single_tables(given))
    routers = tops.add_inside(build, add_endpoints)
    tops.add_status(build)
    for name in ("loaded", "loaded_program", "modes"):
        build.add_output(name, build.nets[name])
    return Built(routers, latency)
