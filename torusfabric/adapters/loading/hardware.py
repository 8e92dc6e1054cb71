# amaranth: UnusedElaboratable=no
"""The hardware of a loaded fabric: a core with a room, its tables, and what loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from ...errors import InputError, WorkFailed
from ...program import Program
from ...rtl.arrays import NodeGroups
from ...rtl.core import Core
from ...rtl.core.memory_port import SharedPort
from ...rtl.core.room import SettingTable
from ...rtl.core.run_port import RunPort
from ...rtl.memories import address_width
from ...rtl.netlist import Fixed, NetlistBuilder, Part, Parts, Role, add_single
from ...simulation.engines.edges import Access, Edges
from ...toolchain.values import shown
from ..host.finders import DirectFinder, HostLayout
from ..host.front import NETS
from ..host.port import Host, add_host_port
from ..streams.hardware import LEAD
from .finder import BlockFinder, host_layout
from .fitting import loadable_modes
from .image import Image
from .layout import TableLayout, TableSize
from .loader import WORDS, ImageLoader
from .requests import Requests, choices_of
from .room import Room, room_for
from .table import LoadedTable, part_bits

__all__ = ["SHOWN", "Loading", "make_tables"]

#: What is shown of what is loaded.
SHOWN = ("loaded", "loaded_program", "modes")

#: Nets of tables of which each output of the sequencer is the address, and their rows.
READ_BY = {"rows": ("row_address", "row_word"), "modes": ("form_address", "form_word"),
           "blocks": ("block_address", "block_word")}  # fmt: skip


#: Nets of the addresses of `TableLayout.stream_tables`.
STREAM_ADDRESSES = ("unload_key", "entry")


def make_tables(
    program: Program, tables: Room | Image | str, width: int, *, streams: bool, empty: bool = False
) -> Loading:
    """Return the tables of a fabric.

    Parameters
    ----------
    tables : {"ram"}, Room or Image
        What there is room for, by default what the program needs; or what is there at first.

    Raises
    ------
    InputError
        If the program does not fit, or the room is that of a fabric with another top.
    """
    if not isinstance(tables, str | Room | Image):
        raise InputError(f"Tables must be rom, ram, a Room or an Image, not {shown(tables)}")
    room = tables.room if isinstance(tables, Image) else tables
    if isinstance(room, Room) and room.streams is not streams:
        of = "streams" if streams else "a host port"
        raise InputError(f"Tables must be those of a fabric with {of}, not another")
    if isinstance(tables, Image):
        # One that fills some modes has the places of others, that need not be there.
        return Loading(Image(tables.room, tables.width, tables.modes), empty)
    modes = loadable_modes(program, room if isinstance(room, Room) else None)
    if not isinstance(room, Room):
        room = room_for(modes, streams=streams)
    return Loading(Image(room, width, modes), empty)


@dataclass(frozen=True, eq=False)
class Loading:
    """The tables of a fabric that are loaded, and the core that has them.

    Parameters
    ----------
    image : Image
        The image that is there at first, or is to be loaded.
    empty : bool
        True if nothing is there at first.
    """

    image: Image
    empty: bool = False

    @property
    def room(self) -> Room:
        """What may be loaded."""
        return self.image.room

    @property
    def width(self) -> int:
        """Bits of a flit."""
        return self.image.width

    @cached_property
    def program(self) -> Program:
        """The program of the fabric once it is loaded."""
        return self.image.program

    @property
    def layout(self) -> TableLayout:
        """The bits of tables."""
        return self.image.layout

    @property
    def proofs(self) -> Any:
        """What is proved of a fabric with these tables."""
        from . import claims  # when it is asked for

        return claims

    def load(self) -> Access[None]:
        """Load the image of a fabric into which nothing is built in.

        Raises
        ------
        WorkFailed
            If the fabric refuses it.
        """
        words, settling = self.image.words, self.image.settling
        writes = [1] * len(words) + [0] * settling
        inputs = {"load_we": writes, "load_first": [1, 0], "load_data": words}
        yield Edges(len(writes), inputs)
        passed = yield Edges(1, {}, ["loaded"])
        if not passed.shown["loaded"][0]:
            raise WorkFailed("Image must be taken by the fabric, not refused")

    def host_layouts(self) -> tuple[HostLayout, ...]:
        """Return where the host finds words, whatever is loaded."""
        return (host_layout(self.layout),)

    def contents(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the first rows of tables of one owner."""
        tables = [] if self.empty else self.image.contents[number]
        return tuple(tuple(max(row, 0) for row in rows) for rows in tables)

    def make_core(self, *, resets: bool = False) -> Core:
        """Return the core of a fabric with a host port, or with streams."""
        room, program = self.room, self.program
        if room.streams:
            return Core(
                program,
                self.width,
                room=room,
                sections=2,
                concurrent=True,
                run_port=RunPort(program, sections=2, lead=LEAD, resets=False, room=room),
            )
        return Core(
            program,
            self.width,
            room=room,
            run_port=RunPort(program, lead=0, resets=resets, room=room),
            memory_port=SharedPort(
                program.memories,
                max(room.sizes.words, room.sent_words),
                self.width,
                nodes=room.nodes,
                place_bits=NodeGroups(room.nodes).place_bits,
                enables=(0,),
            ),
        )

    def add_host(self, core: Core) -> tuple[list[tuple[str, int]], int]:
        """Add a host port, and a port that takes images.

        Returns
        -------
        routers : list of (str, int)
            The modules of routers, and of how many nodes each is.
        latency : int
            Edges from an address to its data.
        """
        build, layout = core.build, self.layout
        for name, bits in {"start": 1, **choices_of(self.room).inputs}.items():
            build.add_input(name, bits)
        if core.run_port.resets:
            build.add_input("reset_run")
        for name, bits in WORDS.items():
            build.add_input(name, bits)
        add_single(build, "requests", Role.SEQUENCER, partial(Requests, layout))
        (addresses,) = self.host_layouts()
        make = partial(
            Host,
            [BlockFinder(addresses, layout)],
            [DirectFinder(addresses, by_chunk=False)],
            width=self.width,
            address_bits=build.address_bits,
            answer=build.answer,
        )
        latency = add_host_port(build, make)
        self.add_loader(build, "loader", "run_form")
        routers = core.add(NETS, partial(self.add_node_tables, core))
        for name in ("busy", "done", "cycles", "error", "round"):
            build.add_output(name, build.nets[name])
        return routers, latency

    def add_node_tables(self, core: Core) -> None:
        """Add the tables of nodes: one module for those of equal contents."""
        build, layout = core.build, self.layout
        near, sizes = build.distribution.near, layout.tables[0]
        names = [f"{table.name.lower()}_row" for table in SettingTable] + [*layout.stream_tables]
        starts = accumulate((bits for _, bits in sizes), initial=0)
        parts = {
            name: (((start, bits),), 0)
            for name, start, (_, bits) in zip(names, starts, sizes, strict=False)
            if bits
        }
        for name, table in core.tables.items():
            assert len(table.columns) == part_bits(parts[f"{name}_row"][0]), "one plan has all bits"
        modules = dict[tuple[tuple[int, ...], ...], str]()
        for node in range(self.room.nodes):
            contents = self.contents(node)
            if contents not in modules:
                modules[contents] = self._add_module(build, f"node_{node}", node, parts)
            bus = {name: near(name, node) for name in layout.bus}
            addresses: list[Parts] = [
                near(f"setting_{table.name.lower()}", node) for table in SettingTable
            ]
            for net, name in zip(STREAM_ADDRESSES, layout.stream_tables, strict=False):
                bits = address_width(layout.stream_tables[name][0])
                addresses.append((Part(f"{net}_{node}", 0, bits),))
            asked = {
                f"address_{number}": address
                for number, (address, (_, bits)) in enumerate(zip(addresses, sizes, strict=True))
                if bits
            }
            build.add(
                f"the_table_node_{node}",
                modules[contents],
                inputs=self._inputs(node, asked, bus),
                outputs={part: (f"{part}_{node}", part_bits(runs))
                         for part, (runs, _) in parts.items()},
                node=node,
            )  # fmt: skip

    def add_loader(self, build: NetlistBuilder, name: str, form: str, rest: str = "") -> None:
        """Add what takes the words of images, and the tables that there are once.

        Parameters
        ----------
        form : str
            The net of the form of the last run.
        rest : str
            The net that says that nodes have passed on what runs have brought, if images wait.
        """
        layout, room = self.layout, self.room
        there = (0, 0, 0) if self.empty else self.image.there
        known = room.digest(self.width), layout.bus, room.sizes.entries, there
        make = partial(ImageLoader, *known, waits=bool(rest))
        bus: Mapping[str, Parts] = add_single(
            build, name, Role.LOADER, make, renamed={"last_entry": form, "all_rest": rest}
        )
        bus = {**{member: bus[member] for member in layout.bus}, "load_every": (Fixed(0, 1),)}
        for number, (table, (rows, bits)) in enumerate(layout.single_tables.items(), room.nodes):
            whole = table == "starts"
            width = rows * bits if whole else bits
            address, net = READ_BY.get(table, ("", table))
            asked = {} if whole else {"address_0": (Part(address, 0, address_width(rows)),)}
            module = self._add_module(
                build, table, number, {"row": (((0, width),), 0)}, whole=whole
            )
            inputs = self._inputs(number, asked, bus)
            build.add(f"the_table_{table}", module, inputs=inputs, outputs={"row": (net, width)})

    def _add_module(
        self, build: NetlistBuilder, name: str, number: int,
        parts: Mapping[str, tuple[Sequence[TableSize], int]], *, whole: bool = False,
    ) -> str:  # fmt: skip
        """Declare the tables of one owner; the name of the module."""
        tables, contents = self.layout.tables[number], self.contents(number)
        module = f"table_{name}" if contents else f"empty_{name}"
        make: Any = partial(LoadedTable, tables, self.layout.bus, contents, parts, whole=whole)
        build.add_module(module, make, role=Role.TABLE)
        return module

    def _inputs(
        self, number: int, asked: Mapping[str, Parts], bus: Mapping[str, Parts]
    ) -> dict[str, Parts]:
        """Return what the tables of one owner are given."""
        own: dict[str, Parts] = {"number": (Fixed(number, self.layout.bus["load_table"]),)}
        return {**own, **asked, **bus}
