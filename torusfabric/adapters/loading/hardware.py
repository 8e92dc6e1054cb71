# amaranth: UnusedElaboratable=no
"""The hardware of a loaded fabric: a core built for a room, its tables, and the loader.

A *room* is the capacity of a loaded fabric: the limits of all programs that can be loaded. The
*loader* is the module that writes the words of an image into the tables. An *owner* is a node, or
one of the *single tables*, which exist once in a fabric; the loader addresses the tables by owner
number. An *entry* is one form of a mode, for one root if runs choose the root.

`make_tables` returns a `Loading` for a program and the `tables` option of `Fabric`. `Loading` makes
the core, and adds the tables, the loader and the host port to its netlist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from ...contract.node_block import NodeBlock
from ...errors import InputError, WorkFailed
from ...program import Program
from ...rtl.arrays import NodeGroups
from ...rtl.core import Core
from ...rtl.core.core import CoreBuilder
from ...rtl.core.memory_port import SharedPort
from ...rtl.core.room import SettingTable
from ...rtl.core.run_port import RunPort
from ...rtl.flit_rows import AUTO, check_beat
from ...rtl.memories import address_width
from ...rtl.netlist import Constant, NetlistBuilder, Part, Parts, Role, add_single_instance
from ...simulation.engines.edges import Access, EdgeRequest
from ...toolchain.values import message_text
from ..host.finders import DirectFinder, HostLayout
from ..host.front import RUN_PORT_NETS
from ..host.port import HostTranslator, add_host_port
from ..streams.hardware import LEAD_CYCLES
from .finder import BlockFinder, host_layout
from .fitting import choose_beat, loadable_modes
from .image import Image
from .layout import TableLayout, TableSize
from .loader import LOAD_INPUTS, ImageLoader
from .requests import Requests, start_choices
from .room import Room, room_for
from .table import LoadedTable, part_bits

__all__ = ["STATE_OUTPUTS", "Loading", "make_tables"]

#: Outputs of the fabric that tell the loaded state.
STATE_OUTPUTS = ("loaded", "loaded_program", "modes")

#: For each single table that is read by address, the net with the address and the net with the row.
READ_NETS = {"rows": ("row_address", "row_word"), "modes": ("form_address", "form_word"),
           "blocks": ("block_address", "block_word")}  # fmt: skip


#: Nets of the addresses of `TableLayout.stream_tables`.
STREAM_ADDRESSES = ("unload_key", "entry")


def make_tables(
    program: Program, tables: Room | Image | str, width: int, beat: int | str = AUTO, *,
    streams: bool, empty: bool = False,
) -> Loading:  # fmt: skip
    """Return the loaded tables of a new fabric.

    Parameters
    ----------
    program : Program
        The modes of the first image, unless `tables` is an image.
    tables : {"ram"}, Room or Image
        "ram" for tables that are just large enough for the program, a `Room` for tables of that
        capacity, or an `Image`: the first image, with the room for which it was made.
    width : int
        Bits of a flit.
    beat : int or "auto"
        Flits in a word of ports. "auto" takes the beat of the room, or else that of `choose_beat`.
    streams : bool
        True if nodes have streams.
    empty : bool
        True if the tables are empty after power-up, so that the first image has to be loaded.

    Raises
    ------
    InputError
        If the program does not fit, or the room is for another top (host port, streams) or beat.
    """
    if not isinstance(tables, str | Room | Image):
        raise InputError(f"Tables must be rom, ram, a Room or an Image, not {message_text(tables)}")
    room = tables.room if isinstance(tables, Image) else tables
    if isinstance(room, Room) and room.streams is not streams:
        of = "streams" if streams else "a host port"
        raise InputError(
            f"These tables were made for another top, but this fabric has {of}; take tables of a "
            f"fabric with {of}"
        )
    if isinstance(room, Room):
        if beat not in (AUTO, room.beat):
            raise InputError(
                f"Beat must be {room.beat}, for which the tables were made, not {beat}"
            )
        check_beat(program, width, room.beat)
    if isinstance(tables, Image):
        # A partial image is turned into a full one: its base is not loaded in a new fabric.
        return Loading(Image(tables.room, tables.width, tables.modes), empty)
    if isinstance(room, Room):
        modes = loadable_modes(program, room)
    else:
        beat = choose_beat(program, width, beat, streams=streams)
        modes = loadable_modes(program, beat=beat)
        room = room_for(modes, streams=streams)
    return Loading(Image(room, width, modes), empty)


@dataclass(frozen=True, eq=False)
class Loading:
    """The loaded tables of a fabric, and the builder of their hardware.

    Parameters
    ----------
    image : Image
        The initial contents of the tables or, if `empty`, the image to load first.
    empty : bool
        True if the tables are empty after power-up.
    """

    image: Image
    empty: bool = False

    @property
    def room(self) -> Room:
        """The capacity of the fabric."""
        return self.image.room

    @property
    def width(self) -> int:
        """Bits of a flit."""
        return self.image.width

    @cached_property
    def program(self) -> Program:
        """The program that the fabric executes once its image is loaded."""
        return self.image.program

    @property
    def layout(self) -> TableLayout:
        """The bit fields and sizes of the tables."""
        return self.image.layout

    @property
    def proofs(self) -> Any:
        """The Python package with the claims of a proof about a fabric with these tables."""
        from . import claims  # here, since only proofs need it

        return claims

    def load(self, image: Image | None = None) -> Access[None]:
        """Load an image into a simulated fabric.

        This is a generator: it yields the values of inputs for the next clock edges, and receives
        the outputs after them. The words of the image are written in consecutive cycles. Then the
        output `loaded` is read.

        Parameters
        ----------
        image : Image, optional
            By default the image of these tables.

        Raises
        ------
        WorkFailed
            If the fabric refuses the image.
        """
        image = image or self.image
        words, settling = image.words, image.settle_cycles
        writes = [1] * len(words) + [0] * settling
        inputs = {"load_we": writes, "load_first": [1, 0], "load_data": words}
        yield EdgeRequest(len(writes), inputs)
        passed = yield EdgeRequest(1, {}, ["loaded"])
        if not passed.shown["loaded"][0]:
            raise WorkFailed(
                "The fabric in simulation refused its image; make both again from the same "
                "selection"
            )

    def host_layouts(self) -> tuple[HostLayout, ...]:
        """Return the bit fields of host addresses: node, part, and flit of the part.

        A part is the message from one origin or for one destination. The fields are the same for
        all images, so the tuple has one element.
        """
        return (host_layout(self.layout),)

    def initial_rows(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the rows of some tables at power-up, as ``[table][row]``; unused rows are 0.

        Parameters
        ----------
        number : int
            The number k of a node for all tables of this node; or N + k, for N nodes, for the k-th
            of the tables that exist once.
        """
        tables = [] if self.empty else self.image.contents[number]
        return tuple(tuple(max(row, 0) for row in rows) for rows in tables)

    def make_core(self, *, resets: bool = False, cut: NodeBlock | None = None) -> Core:
        """Return a core that can execute every program within the capacity of these tables.

        It is prepared for a host port or for streams, as `Room.streams` says.

        Parameters
        ----------
        resets : bool
            True if a core with a host port has the input `reset_run`, which ends a run early.
        cut : NodeBlock, optional
            The nodes to build, for one board of several; by default all nodes.
        """
        room, program = self.room, self.program
        nodes = cut.built_nodes if cut else [*range(room.nodes)]
        if room.streams:
            return Core(
                program,
                self.width,
                room=room,
                beat=room.beat,
                sections=2,
                concurrent=True,
                run_port=RunPort(program, sections=2, lead=LEAD_CYCLES, resets=False, room=room),
            )
        core = Core(
            program,
            self.width,
            room=room,
            beat=room.beat,
            nodes=nodes,
            run_port=RunPort(program, lead=0, resets=resets, room=room),
            memory_port=SharedPort(
                program.memories,
                max(room.sizes.words, room.sent_words),
                room.beat * self.width,
                nodes=len(nodes),
                place_bits=NodeGroups(len(nodes)).position_bits,
                enables=(0,),
            ),
        )
        core.build.cut = cut
        return core

    def add_host(self, core: Core, closed_by: str = "") -> tuple[list[tuple[str, int]], int]:
        """Add a host port, a load port, the tables and all nodes to the netlist of a core.

        The load port is the inputs that take the words of images.

        Parameters
        ----------
        core : Core
            A core that `make_core` has returned.
        closed_by : str
            Prefix of the names of two nets, `start` and `busy`. While one of them is high, writes
            at the host port are ignored. While `busy` is high, the load port is closed, too.

        Returns
        -------
        routers : list of (str, int)
            Name of each router module, and the number of nodes that are instances of it.
        latency : int
            Clock edges from a read address of the host port to its data.
        """
        build, layout = core.build, self.layout
        for name, bits in {"start": 1, **start_choices(self.room).sampled_inputs}.items():
            build.add_input(name, bits)
        if core.run_port.resets:
            build.add_input("reset_run")
        for name, bits in LOAD_INPUTS.items():
            build.add_input(name, bits)
        add_single_instance(build, "requests", Role.SEQUENCER, partial(Requests, layout))
        (addresses,) = self.host_layouts()
        make = partial(
            HostTranslator,
            [BlockFinder(addresses, layout)],
            [DirectFinder(addresses, by_chunk=False)],
            width=build.word,
            address_bits=build.address_bits,
            answer=build.read_cycles,
            blocks=build.cut.nodes if build.cut else None,
        )
        latency = add_host_port(build, make, outside=closed_by)
        self.add_loader(build, "loader", "run_form", busy=f"{closed_by}busy")
        routers = core.add_modules(RUN_PORT_NETS, partial(self.add_node_tables, core))
        for name in ("busy", "done", "cycles", "error", "round"):
            build.add_output(name, build.nets[name])
        return routers, latency

    def add_node_tables(self, core: Core) -> None:
        """Add a `LoadedTable`, with all tables of a node, for each node of `core`.

        Nodes whose tables have equal initial contents are instances of one module.
        """
        build, layout = core.build, self.layout
        near, sizes = build.distribution.group_register, layout.table_sizes[0]
        names = [f"{table.name.lower()}_row" for table in SettingTable] + [*layout.stream_tables]
        starts = accumulate((bits for _, bits in sizes), initial=0)
        parts = {
            name: (((start, bits),), 0)
            for name, start, (_, bits) in zip(names, starts, sizes, strict=False)
            if bits
        }
        for name, table in core.tables.items():
            assert len(table.columns) == part_bits(parts[f"{name}_row"][0]), "one plan has all bits"
        # A module is named by the first node of the whole fabric with its contents, even if that
        # node is not built here.
        named = dict[tuple[tuple[int, ...], ...], int]()
        first = [named.setdefault(self.initial_rows(node), node) for node in range(self.room.nodes)]
        of_first = {
            number: self._add_module(build, f"node_{number}", number, parts)
            for number in sorted({first[node] for node in core.nodes.tolist()})
        }
        for node, whole in enumerate(core.nodes.tolist()):
            bus = {name: near(name, node) for name in layout.bus_signals}
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
            inputs = self._table_inputs(whole, asked, bus)
            if build.cut:
                bits = layout.bus_signals["load_table"]
                inputs["number"] = (Part("numbers", node * bits, bits),)
            build.add_instance(
                f"the_table_node_{node}",
                of_first[first[whole]],
                inputs=inputs,
                outputs={part: (f"{part}_{node}", part_bits(runs))
                         for part, (runs, _) in parts.items()},
                node=node,
            )  # fmt: skip

    def add_loader(
        self, build: CoreBuilder, name: str, form: str, rest: str = "", busy: str = "busy"
    ) -> None:
        """Add the loader of images, and the tables that exist once in a fabric, such as `rows`.

        Parameters
        ----------
        build : CoreBuilder
            The netlist to which modules are added.
        name : str
            Name of the loader.
        form : str
            Name of the net with the entry number (number of form and root) of the last run.
        rest : str
            Name of a net that is high if all nodes have sent the results of all runs to the user.
            An empty string if images need not wait for this.
        busy : str
            Name of a net that is high while a run is under way. On several boards it is high
            already while the board waits for the others to start.
        """
        layout, room = self.layout, self.room
        there = (0, 0, 0) if self.empty else self.image.loaded_state
        known = room.digest(self.width), layout.bus_signals, room.sizes.entries, there
        blocks = build.cut.nodes if build.cut else None
        make = partial(ImageLoader, *known, waits=bool(rest), blocks=blocks)
        nets = {"last_entry": form, "all_rest": rest, "busy": busy}
        bus: Mapping[str, Parts] = add_single_instance(build, name, Role.LOADER, make, renamed=nets)
        bus = {
            **{member: bus[member] for member in layout.bus_signals},
            "load_every": (Constant(0, 1),),
        }
        for number, (table, (rows, bits)) in enumerate(layout.single_tables.items(), room.nodes):
            whole = table == "starts"
            width = rows * bits if whole else bits
            address, net = READ_NETS.get(table, ("", table))
            asked = {} if whole else {"address_0": (Part(address, 0, address_width(rows)),)}
            module = self._add_module(
                build, table, number, {"row": (((0, width),), 0)}, whole=whole
            )
            inputs = self._table_inputs(number, asked, bus)
            build.add_instance(
                f"the_table_{table}", module, inputs=inputs, outputs={"row": (net, width)}
            )

    def _add_module(
        self, build: NetlistBuilder, name: str, number: int,
        parts: Mapping[str, tuple[Sequence[TableSize], int]], *, whole: bool = False,
    ) -> str:  # fmt: skip
        """Add a module with the tables of one owner to a netlist, and return the module's name.

        With N nodes, owner `number` is a node if `number` is below N; each number from N on stands
        for a table of which the fabric has only one. `name` is the suffix of the module name.
        `parts` has the bits that each output of the module shows, and `whole` is True if the module
        outputs all rows at once, see `LoadedTable`. `build` is the netlist under construction.
        """
        tables, contents = self.layout.table_sizes[number], self.initial_rows(number)
        module = f"table_{name}" if contents else f"empty_{name}"
        make: Any = partial(
            LoadedTable, tables, self.layout.bus_signals, contents, parts, whole=whole
        )
        build.add_module(module, make, role=Role.TABLE)
        return module

    def _table_inputs(
        self, number: int, asked: Mapping[str, Parts], bus: Mapping[str, Parts]
    ) -> dict[str, Parts]:
        """Return the source of each input, by name, of a module with the tables of one owner.

        The owner is a node or a table that exists once. The inputs are its `number`, the addresses
        of the rows to read (`asked`), and the bus on which the loader writes (`bus`).
        """
        own: dict[str, Parts] = {
            "number": (Constant(number, self.layout.bus_signals["load_table"]),)
        }
        return {**own, **asked, **bus}
