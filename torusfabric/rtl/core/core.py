# amaranth: UnusedElaboratable=no
"""The netlist of a core: all nodes, the links between them, and the sequencer.

`Core` decides how the program becomes hardware (`Rows`, `NodeKinds`, `SequencerSignals`), and
`Core.add_modules` fills a `CoreBuilder` with the modules and their instances. An adapter adds its
own hardware to the same builder; see `torusfabric.rtl.front`.

A node has up to three modules: ``router_K``, ``combiner_K`` (its operators) and ``endpoint_K`` (its
memories and readers). K is the number of the *family* of nodes that share the module. A *kind* of
nodes are nodes whose selectors, addresses and enables have equal values in each row; a family has
one or more kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from amaranth.lib.wiring import Out

from ...errors import InputError
from ...program.fields import Stage
from ...program.host_words import word_addresses
from ..arrays import Constant, Constants, Part, Slice, SliceChoice, Source
from ..distribution import Distribution, WordNets
from ..flit_rows import FlitRows, received_pitch, unsupported_beat_reason
from ..memories import address_width
from ..netlist import Netlist, NetlistBuilder, Role
from .memory_port import MemoryPort
from .node_module import NodeInputs, NodeSettings
from .places import BitPlacer, NodeTable, SequencerSignals
from .router import CrossbarPlan, PortOperators, Router, plan_all_crossbars
from .rows import NodeKinds, Rows
from .run_port import RunPort
from .sequencer import RunControl, Sequencer, row_bits
from .store import StoreModule
from .store_plan import StorePlan, plan_stores

if TYPE_CHECKING:
    from ...contract.node_block import NodeBlock
    from ...program import Program
    from ...topology import BoolArray, IntArray
    from ..assembly import Assembly
    from ..modules import Leaf
    from ..operator_unit import OperatorUnit
    from .direct_port import DirectPort
    from .families import ModuleFamily
    from .room import RoomShape

__all__ = ["Core"]


class LinkPort(NamedTuple):
    """An arc that leaves or enters a core.

    Parameters
    ----------
    node, port : int
        The sending node, by its number in the whole network, and its out-port.
    cycles : int
        Cycles that the word still takes behind the register of the out-port.
    """

    node: int
    port: int
    cycles: int


class CoreBuilder(NetlistBuilder):
    """Builder of the netlist of a core, and of the adapter around it.

    Parameters
    ----------
    program : Program
        The program that the core executes.
    nodes : ndarray of int
        The nodes to build. In the netlist they are numbered 0, 1, .. in this order.
    settings : NodeSettings
        The properties that all nodes share.
    memory_port : MemoryPort or DirectPort
        The port by which an adapter writes and reads the words of a node.
    hold : int
        Cycles after a write by the memory port in which no run may begin.
    address_bits : int
        Bits of an address of the deepest memory.
    """

    def __init__(
        self,
        program: Program,
        nodes: IntArray,
        *,
        settings: NodeSettings,
        memory_port: MemoryPort | DirectPort,
        hold: int,
        address_bits: int,
    ) -> None:
        super().__init__()
        self.memory_port, self.hold = memory_port, hold
        self.program, self.here, self.settings = program, nodes, settings
        self.nodes, self.word = len(nodes), memory_port.width
        self.address_bits = address_bits
        self.distribution = Distribution(self, self.nodes)
        self.sources = program.forms[0].loop.sources
        self.from_host: list[str] = []
        #: The part of a network that one of several host ports serves.
        self.cut: NodeBlock | None = None
        self.injection_places: IntArray = np.zeros((0, 0), int)

    @property
    def read_net(self) -> str:
        """The net with the word that the memory port of a node has read.

        It is ``read_data_K`` at node K. A read tree behind it combines the words of all nodes. If
        the fabric has a single node of a larger network, there is no tree, and the net is the
        output ``host_rdata`` of the host port itself.
        """
        return "host_rdata" if self.cut and self.nodes == 1 else "read_data_{}"

    @property
    def read_cycles(self) -> int:
        """Cycles from an address at the inputs of a node to the word read, at its output."""
        return self.memory_port.read_cycles

    @property
    def operator_unit(self) -> OperatorUnit | None:
        """The unit that combines words, or None if the program has no operators."""
        return self.settings.unit

    @cached_property
    def sending_ports(self) -> tuple[IntArray, IntArray]:
        """The neighbour and the out-port that send to each in-port: two arrays of shape (nodes,
        ports).

        The neighbour is -1 if it is not in this core.
        """
        there, port = (each[self.here] for each in self.program.topology.upstream)
        number = np.full(self.program.topology.nodes + 1, -1)
        number[self.here] = np.arange(self.nodes)
        return number[there], port

    @cached_property
    def outside_in_ports(self) -> list[tuple[int, int]]:
        """The in-ports (node, port) whose words come from outside of the core."""
        there, _ = self.sending_ports
        known = self.program.topology.upstream[0][self.here] >= 0
        return [(int(node), int(port)) for node, port in np.argwhere((there < 0) & known)]

    @cached_property
    def _arriving_bits(self) -> WordNets:
        """The net, and the lowest bit in the net, of the word at each in-port of each node.

        The net is ``tx_K`` if the neighbour is node K of this core, ``link_rx_K`` if the word
        enters the core by link port K, and ``arrived_P_K`` behind a link of several cycles.
        """
        there, port = self.sending_ports
        cycles = self.program.topology.cycles_of_arc[
            np.where(there < 0, 0, self.here[there]), np.where(there < 0, 0, port)
        ]
        ports = self.settings.ports
        nets = ["tx_{}", "link_rx_{}", *(f"arrived_{k}_{{}}" for k in range(ports))]
        which = np.where(there < 0, 1, np.where(cycles > 1, 2 + port, 0))
        links = np.zeros_like(there)
        for number, (node, at) in enumerate(self.outside_in_ports):
            links[node, at] = number
        start = np.where(which == 0, port * self.settings.width, 0)
        return WordNets(nets, which, np.where(there < 0, links, there), start)

    def word_nets(self, nodes: IntArray, sources: IntArray) -> list[Slice | SliceChoice]:
        """Return the nets of the words that nodes can select, one for each column of `sources`.

        Parameters
        ----------
        nodes : ndarray of int, shape (nodes,)
            The nodes, by their numbers in the netlist.
        sources : ndarray of int, shape (nodes, words)
            The numbers of the words in `Sources`: those of in-ports, results of operators and
            injection ports.
        """
        if not sources.shape[1]:
            return []
        came, listed = self._arriving_bits, self.sources.by_number
        stages = np.array([stage for stage, _ in listed])[sources]
        numbers = np.array([number for _, number in listed])[sources]
        port = np.where(stages == Stage.PORT, numbers, 0)
        own = {
            Stage.RESULT: "result_{}",
            Stage.EARLY_RESULT: "made_{}",
            Stage.INJECTION: "inject_{}",
        }
        which, number, start = (np.take_along_axis(each[nodes], port, 1) for each in came[1:])
        for net, stage in enumerate(own):
            here = stages == stage
            which = np.where(here, len(came.nets) + net, which)
            number = np.where(here, nodes[:, None], number)
            place = numbers
            if stage is Stage.INJECTION:
                place = self.injection_places[nodes[:, None], np.where(here, numbers, 0)]
            start = np.where(here, place * self.settings.width, start)
        return WordNets([*came.nets, *own.values()], which, number, start).word_slices(
            self.settings.width
        )

    def arriving_nets(self, nodes: IntArray) -> list[Slice | SliceChoice]:
        """Return the nets of the words at the in-ports of some nodes: one slice for each port."""
        ports = np.arange(self.settings.ports)
        return self.word_nets(nodes, np.tile(ports, (len(nodes), 1)))


class _NodePlans(NamedTuple):
    """The plans of the modules of nodes: crossbars of routers and of operators, and stores."""

    routers: list[CrossbarPlan]
    operators: list[CrossbarPlan]
    stores: list[StorePlan]


class Core:
    """The hardware that executes a program.

    There are two ways to use a core. `netlist` and `make_component` are the core alone. An adapter
    instead adds its hardware to `build` and calls `add_modules`.

    Parameters
    ----------
    program : Program
        The program to execute.
    width : int
        Bits of a flit.
    beat : int
        Flits that a memory port moves in a cycle, a power of two. The flits of a beat are
        successive flits of one block and lie in one row of a memory. The address of a beat is that
        of its first flit, with which a word that is read begins. A program for messages of any
        length must fill blocks by beats, see `Program.by_beats`.
    sections : int
        Number of sections of each memory, a power of two. A section holds all words of one run;
        each run, write and read chooses a section.
    concurrent : bool
        True if memory ports can write and read during a run, in sections that the run does not use.
    nodes : sequence of int, optional
        The nodes to build, by default all. Arcs from and to other nodes end in link ports.
    room : RoomShape, optional
        The limits of the programs that can be loaded, for a core with writable tables; see
        `torusfabric.rtl.core.room`. `program` must then be made for these limits, by
        `torusfabric.adapters.loading.fitting`. The adapter adds the tables: those of the nodes,
        described by `tables`, and those of the sequencer.
    run_port : RunPort, optional
        The port that starts runs, by default one with every choice that the program offers.
    memory_port : MemoryPort or DirectPort, optional
        The port by which an adapter writes and reads the words of a node, by default a memory port
        at each node. A `DirectPort` makes a core without memories.

    Attributes
    ----------
    netlist : Netlist
        The core alone; its ports are the ports of the netlist.
    build : CoreBuilder
        The builder that takes the hardware of the adapter and, by `add_modules`, of the core.

    Examples
    --------
    >>> import torusfabric as tf
    >>> core = Core(tf.compile(tf.plan("3x3", "allgather", algorithm="matching")), width=8)
    >>> sorted(core.netlist.modules)
    ['control_stage', 'endpoint_0', 'router_0', 'sequencer']
    """

    def __init__(  # noqa: PLR0913 (one choice each)
        self,
        program: Program,
        width: int,
        *,
        beat: int = 1,
        sections: int = 1,
        concurrent: bool = False,
        nodes: Sequence[int] | None = None,
        room: RoomShape | None = None,
        run_port: RunPort | None = None,
        memory_port: MemoryPort | DirectPort | None = None,
    ) -> None:
        if beat.bit_count() != 1:
            raise InputError(f"Beat must be a power of two, not {beat}")
        fault = unsupported_beat_reason(program, beat)
        if fault is not None:
            raise InputError(fault)
        self.program, self.width, self.beat = program, width, beat
        self.sections, self.concurrent = sections, concurrent
        every = range(program.topology.nodes) if nodes is None else nodes
        self.nodes: IntArray = np.array(every)
        self.room, self.tables = room, dict[str, NodeTable]()
        self.rows, self.kinds = self._plan_rows(room)
        shared = memory_port is not None and memory_port.shared
        self._columns = SequencerSignals(by_setting=room is not None, shared=shared)
        operators = room.parsed_operators() if room else program.operators
        unit: OperatorUnit | None = None
        if operators:
            from ..operator_unit import OperatorUnit

            unit = OperatorUnit(operators)
        self._settings = NodeSettings(width, program.ports, unit)
        self.run_port = run_port or RunPort(program, sections=sections, room=room)
        self.memory_port = memory_port or MemoryPort(
            self.rows.memories,
            int(self.rows.depth.max()),
            beat * width,
            sections=sections,
            concurrent=concurrent,
        )
        if isinstance(self.memory_port, MemoryPort):
            self.memory_port.set_stages(self.kinds.max_read_memories)
        self.build = CoreBuilder(
            program,
            self.nodes,
            settings=self._settings,
            memory_port=self.memory_port,
            hold=self.run_port.hold,
            address_bits=address_width(int((self.rows if room else program).depth.max())),
        )
        self._families: dict[str, ModuleFamily] = {}

    def _plan_rows(self, room: RoomShape | None) -> tuple[Rows, NodeKinds]:
        """Return the control values of all rows, and the division of the nodes into kinds.

        A control value is the value of one selector, address or enable of a node in a row. Nodes
        with equal control values are of one kind. A core with writable tables has a `room`, the
        limits of the programs that can be loaded. Its rows are not those of the program: they have
        random values, among which each value that the room allows occurs.
        """
        if room is not None:
            from .room import RoomKinds, RoomRows

            of_room = RoomRows(room)
            return of_room, RoomKinds(of_room, concurrent=self.concurrent)
        rows = Rows(self.program)
        if self.concurrent:
            from .split import SplitRows

            rows = SplitRows(self.program)
        return rows, NodeKinds(rows)

    @cached_property
    def netlist(self) -> Netlist:
        """The netlist of the core alone; the ports of the core are the ports of the netlist."""
        self.add_modules()
        self._expose_ports()
        return self.build.make_netlist()

    def _expose_ports(self) -> None:
        """Make the signals of run port, link ports and memory ports ports of the netlist."""
        build, port = self.build, self.run_port
        for name, width in port.inputs.items():
            build.add_input(name, width)
        for name, width in port.outputs.items():
            build.add_output(name, width)
        for number, _ in enumerate(self.links_in):
            build.add_input(f"link_rx_{number}", self.width)
        node_of = {int(node): number for number, node in enumerate(self.nodes)}
        for number, link in enumerate(self.links_out):
            net, start = f"tx_{node_of[link.node]}", link.port * self.width
            build.wire_output(f"link_tx_{number}", (Part(net, start, self.width),))
        for node in range(len(self.nodes)):
            for name, width in self.memory_port.inputs.items():
                build.add_input(name, width, node=node)
            build.add_output("read_data", build.word, node=node)

    @cached_property
    def links_in(self) -> list[LinkPort]:
        """The arcs that enter the core, in the order of the inputs `link_rx_K`."""
        there, port = self.program.topology.upstream
        return [
            self._link_port(int(there[self.nodes[node], at]), int(port[self.nodes[node], at]))
            for node, at in self.build.outside_in_ports
        ]

    @cached_property
    def links_out(self) -> list[LinkPort]:
        """The arcs that leave the core, in the order of the outputs `link_tx_K`."""
        there, port = self.program.topology.upstream
        inside = np.isin(np.arange(len(there)), self.nodes)
        leaves = np.isin(there, self.nodes) & ~inside[:, None]
        arcs = sorted(zip(there[leaves].tolist(), port[leaves].tolist(), strict=True))
        return [self._link_port(node, at) for node, at in arcs]

    def _link_port(self, node: int, port: int) -> LinkPort:
        """Return the link port of the arc that leaves a node through an out-port."""
        return LinkPort(node, port, int(self.program.topology.cycles_of_arc[node, port]) - 1)

    def locate_words(
        self,
        *,
        received: bool,
        form: int | None = None,
        words: IntArray | None = None,
        **chosen: int | None,
    ) -> tuple[IntArray, IntArray]:
        """Return the memory and the address at which the memory port finds each word of a message.

        Parameters
        ----------
        received : bool
            True for the words that nodes receive, False for the words that they send.
        form : int, optional
            The number of the form in the program. By default `mode` and `length` in `chosen` decide
            it.
        words : ndarray of int, optional
            The numbers of the words, from 0, by default all. With `words`, `length` need not be
            given.
        **chosen : int, optional
            The `mode`, `length` and `root` of the run.

        Returns
        -------
        bank, address : ndarray of int, shape (nodes, words)
            The number of the memory, and the address in it. The address is -1 where a node has no
            such word.
        """
        root = chosen.get("root") or 0
        if form is None:
            form = self.program.form_of(**chosen)
        located = word_addresses(
            self.program, received=received, form=form, length=chosen.get("length"), root=root,
            nodes=self.nodes, words=words,
        )  # fmt: skip
        memory, address = np.broadcast_arrays(*located)
        if not self.concurrent or self.room is not None:
            return memory, address
        from .split import SplitRows

        assert isinstance(self.rows, SplitRows)
        turns = self._find_turns(form, root, memory, address, words, chosen.get("length"))
        variant = np.searchsorted(self.rows.used, self.program.variant_of[self.nodes])
        if self.program.forms[form].by_offset:
            choice = self.kinds.choice_by_root(self.nodes)[:, root]
            start = self.rows.starts[form]
            variant = self.kinds.variants[self.kinds.kind_of[self.nodes], start, choice]
        memory, address = self.rows.locate_words(variant, memory, address, received=received)
        if not received or turns is None:
            return memory, address
        layout = FlitRows(self.beat, received_pitch(self.program, form))
        return memory, np.where(address < 0, address, layout.turn_address(address, turns))

    def _find_turns(
        self, form: int, root: int, memory: IntArray, address: IntArray, words: IntArray | None,
        length: int | None,
    ) -> IntArray | None:  # fmt: skip
        """Return the number by which the row of each received word is rotated.

        `store_shape.Pool` explains rotated rows. `memory` and `address`, of shape (nodes, words),
        are the location of each word in the program, and the other parameters those of
        `locate_words`. The result has the same shape, or is None if no rows are rotated.
        """
        if self.beat == 1:
            return None
        turns = np.zeros((self.kinds.n_kinds, self.build.sources.n_readers), int)
        for store in self._node_plans.stores:
            turns[store.family.kinds] = store.turns
        if not turns.any():
            return None
        from ...program.follow import follow_readers

        words = np.arange(memory.shape[1]) if words is None else words
        _, _, flit = self.program.part(form).locate(words, self.program.length_of(length))
        base = np.where(address < 0, 0, address - self.program.within_blocks(form, memory, flit))
        marks = turns[self.kinds.kind_of]
        return follow_readers(self.program, form, root, marks, memory, base, nodes=self.nodes)

    def make_component(self) -> Assembly:
        """Return an Amaranth component of the core alone, with the ports of `netlist`."""
        from ..assembly import Assembly

        return Assembly(self.netlist)

    # The netlist

    def add_modules(
        self,
        renamed: Mapping[str, str] = MappingProxyType({}),
        add_tables: Callable[[], None] | None = None,
    ) -> list[tuple[str, int]]:
        """Plan all modules, and add them and their instances to `build`.

        Parameters
        ----------
        renamed : dict of str to str
            Signal of the run port -> net that it is connected to. A signal that is not in `renamed`
            is connected to the net with the name of the signal.
        add_tables : function, optional
            A function that adds the writable tables of the nodes.

        Returns
        -------
        list of (str, int)
            Each router module, and the number of nodes that have an instance of it.
        """
        routers, operators, stores = self._node_plans
        placers = [store.placer for store in stores]
        placers += [each.placer for each in (*operators, *routers)]
        self._columns.fix_widths(self.rows, placers)
        self.tables |= {table.name: table for placer in placers for table in placer.tables}
        of_stores = [self._store_maker(store) for store in stores]
        shares = any("busy" in make().signature.members for make in of_stores)
        self._add_sequencer(renamed, shares=shares)
        self._add_choices()
        for number, (store, make) in enumerate(zip(stores, of_stores, strict=True)):
            self._add_part("endpoint", number, store.family, store.placer, make, Role.ENDPOINT)
        for number, each in enumerate(operators):
            self._add_crossbar("combiner", number, each, PortOperators, Role.COMBINER)
        counts = [
            (f"router_{number}", self._add_crossbar("router", number, each, Router, Role.ROUTER))
            for number, each in enumerate(routers)
        ]
        if add_tables is not None:
            add_tables()
        self._add_links()
        self.build.distribution.add_registers()
        return [each for each in counts if each[1]]

    @cached_property
    def _node_plans(self) -> _NodePlans:
        """The plans of all modules of nodes."""
        idles = self._settings.identity_is_zero
        routers, operators = plan_all_crossbars(
            self.rows, self.kinds, self._columns, idles=idles, strobed=self._strobed_ports()
        )
        return _NodePlans(routers, operators, self._plan_stores(idles=idles))

    def _strobed_ports(self) -> BoolArray | None:
        """Return the out-ports with a strobe, shape (kinds, ports); None if there are none.

        They have slow links, with less than a flit a cycle, that lead from one of several cores to
        another. By the strobe, an adapter knows the cycle in which a flit begins, and can send it
        in parts. A core with writable tables has no strobes.
        """
        if self.build.cut is None or self.room is not None:
            return None
        topology = self.program.topology
        block = np.empty(topology.nodes, int)
        block[self.build.cut.nodes] = np.arange(len(self.build.cut.nodes))[:, None]
        slow = (topology.spacing_of_arc > 1) & (block[topology.neighbours] != block[:, None])
        # Modules of equal names are equal in all cores: a kind may have nodes in several.
        found = np.zeros((self.kinds.n_kinds, topology.ports), bool)
        np.logical_or.at(found, self.kinds.kind_of, slow)
        return found if slow.any() else None

    def _plan_stores(self, *, idles: bool) -> list[StorePlan]:
        """Return the plans of the memories and readers, one for each family of nodes.

        Nodes of a family share a module. The list is empty if the core has a direct port in place
        of memories.

        The method also sets `injection_places` of the builder, an array of shape (nodes,
        injections): the position of the word of each injection port in the net ``inject_K`` of node
        K. An injection port is a crossbar input for words from memories.

        `idles` is True if the identity word, which leaves the result of an operator unchanged, is
        0.
        """
        count = len(self.build.sources.injections)
        if not isinstance(self.memory_port, MemoryPort):
            self.memory_port.reserve_signals(self._columns)
            self.build.injection_places = np.tile(np.arange(count), (len(self.nodes), 1))
            return []
        stores = plan_stores(
            self.rows,
            self.kinds,
            self._columns,
            idles=idles,
            port=self.memory_port,
            beat=self.beat,
        )
        places = np.full((self.kinds.n_kinds, count), -1)
        for store in stores:
            places[store.family.kinds] = store.injection_places
        self.build.injection_places = np.maximum(places, 0)[self.kinds.kind_of[self.nodes]]
        return stores

    def _store_maker(self, store: StorePlan) -> Callable[[], StoreModule]:
        """Return a function without parameters that makes the module of one store.

        `store` is the plan of the memories and readers of a family of nodes (nodes that share a
        module).
        """
        assert isinstance(self.memory_port, MemoryPort)
        return partial(
            StoreModule,
            store.shape,
            self.memory_port,
            NodeInputs.from_placer(store.placer),
            self._settings,
            words=store.family.sources.shape[1],
            many=self.rows.has_several_forms,
        )

    def _add_sequencer(self, renamed: Mapping[str, str], *, shares: bool) -> None:
        """Add the sequencer and connect its inputs and outputs to nets.

        Parameters
        ----------
        renamed : dict of str to str
            Signal of the run port -> net that it is connected to, if the names differ.
        shares : bool
            True if the sequencer must signal to the nodes when a run uses their memories.
        """
        given = self.run_port, self._columns, self._settings.unit
        make: Callable[[], RunControl]
        if self.room is not None:
            from .room import RoomRows
            from .room_sequencer import RoomSequencer

            assert isinstance(self.rows, RoomRows)
            make = partial(RoomSequencer, self.rows, *given, shares=shares)
        else:
            by_root = self.kinds.n_choices > 1
            make = partial(Sequencer, self.rows, *given, by_root=by_root, shares=shares)
        members = make().signature.members
        inputs = {
            name: (Part(renamed.get(name, name), 0, each.shape),)
            for name, each in members.items()
            if each.flow is not Out
        }
        outputs = {
            name: (renamed.get(name, name), each.shape)
            for name, each in members.items()
            if each.flow is Out
        }
        self.build.add_module("sequencer", make, role=Role.SEQUENCER)
        self.build.add_instance("the_sequencer", "sequencer", inputs=inputs, outputs=outputs)

    def _add_choices(self) -> None:
        """Add a ROM at each node that maps the root of a run to the choice of the node.

        A choice is the number of one of the behaviours that the program has for the node. The nodes
        of a broadcast, for example, behave differently for each root.
        """
        if self.kinds.n_choices == 1 or self.room is not None:
            return
        build, nodes = self.build, np.arange(len(self.nodes))
        choice = self.kinds.choice_by_root(self.nodes)
        contents, which = np.unique(choice, axis=0, return_inverse=True)
        build.add_roms(
            "rom_choice_{}",
            nodes,
            contents=[tuple(row) for row in contents.tolist()],
            which=np.asarray(which).ravel(),
            width=address_width(self.kinds.n_choices),
            address=(build.distribution.group_registers("node_root", nodes),),
            output="choice_{}",
        )

    def input_sources(self, module: str, node: int) -> list[int]:
        """Return the numbers of the words that enter a module of a node, in the order of inputs.

        `Sources` numbers the words that crossbars can select: those of in-ports, results of
        operators and words from memories. For a router or an endpoint, the words at the input `rx`
        come first, then those at `inject`. A combiner (the operators of a node) has the words of
        all in-ports at `rx`; the result has only the words at `inject`.

        Parameters
        ----------
        module : str
            The name of the module, such as ``router_0``.
        node : int
            The node, by its number in the netlist.
        """
        family = self._families[module]
        (member,) = np.flatnonzero(family.kinds == self.kinds.kind_of[self.nodes[node]])
        sources: list[int] = family.sources[member].tolist()
        return sources

    def _add_crossbar(
        self,
        name: str,
        number: int,
        plan: CrossbarPlan,
        module: type[Router | PortOperators],
        role: Role,
    ) -> int:
        """Add the module of a crossbar for a family of nodes, and its instances.

        The crossbar is a router, or the operators of a node. Return the number of instances.

        Parameters
        ----------
        name : str
            The name of the module without its number: ``router`` or ``combiner``.
        number : int
            The number of the family, which completes the name.
        plan : CrossbarPlan
            The multiplexers, the nodes that share the module, and the sources of the select bits.
        module : type
            The class of the module.
        role : Role
            The role of the module.
        """
        arriving = plan.family.arriving
        make = partial(
            module,
            plan.choices,
            NodeInputs.from_placer(plan.placer),
            self._settings,
            {"rx": arriving, "inject": plan.family.sources.shape[1] - arriving},
            **({} if plan.strobes is None else {"strobes": plan.strobes}),
        )
        return self._add_part(name, number, plan.family, plan.placer, make, role)

    def _add_part(
        self,
        name: str,
        number: int,
        family: ModuleFamily,
        placer: BitPlacer,
        make: Callable[[], Leaf],
        role: Role,
    ) -> int:
        """Add a module, its instances and their tables, and return the number of instances.

        Parameters
        ----------
        name : str
            The name of the module without its number, such as ``router``.
        number : int
            The number of the family, which completes the name.
        family : ModuleFamily
            The nodes that share the module.
        placer : BitPlacer
            The source of each control input of the module.
        make : function of () -> Leaf
            The constructor of the module.
        role : Role
            The role of the module.
        """
        build = self.build
        place = np.full(self.kinds.n_kinds, -1)
        place[family.kinds] = np.arange(len(family.kinds))
        member = place[self.kinds.kind_of[self.nodes]]
        nodes = np.flatnonzero(member >= 0)
        if not len(nodes):
            return 0
        module, members = f"{name}_{number}", make().signature.members
        build.add_module(module, make, role=role)
        words, split = build.word_nets(nodes, family.sources[member[nodes]]), family.arriving
        self._families[module] = family
        given: dict[str, Sequence[Source]] = {"rx": words[:split], "inject": words[split:]}
        if role is Role.COMBINER:
            given = {"rx": build.arriving_nets(nodes), "inject": words}
        elif role is Role.ENDPOINT:
            given = {"rx": words}
        given |= self._sequencer_inputs(placer, member[nodes], nodes)
        given |= self._add_tables(module, placer, member[nodes], nodes)
        given |= {
            port: (self._memory_port_input(port, width, nodes),)
            for port, width in self.memory_port.inputs.items()
            if port in members
        }
        outputs = {
            port: (f"{port}_{{}}", each.shape) for port, each in members.items() if each.flow is Out
        }
        if "read_data" in outputs:
            outputs["read_data"] = build.read_net, build.word
        build.add_array(
            f"{name}_at_{{}}",
            module,
            nodes,
            inputs={port: given[port] for port, each in members.items() if each.flow is not Out},
            outputs=outputs,
        )
        return len(nodes)

    def _memory_port_input(self, port: str, width: int, nodes: IntArray) -> Source:
        """Return the net that drives input `port` of the memory ports, for each node of `nodes`.

        The input has `width` bits. If one memory port serves all nodes, the net is a register of a
        group of nodes, and the input ``node`` is the constant number of the node.
        """
        if not self.memory_port.shared:
            return Slice(f"{port}_{{}}", nodes, 0, width)
        if port == "node":
            return Constants(nodes, width)
        return self.build.distribution.group_registers(port, nodes, width)

    def _sequencer_inputs(
        self, placer: BitPlacer, member: IntArray, nodes: IntArray
    ) -> Mapping[str, Sequence[Source]]:
        """Return the nets that drive those inputs of a module that take signals of the sequencer.

        A key of the result is the name of an input, such as ``columns`` or ``valid_0``. A *kind*
        of nodes are nodes with equal control values. `placer` has the signals for each kind,
        numbered from 0, and ``member[k]`` is the number of the kind of ``nodes[k]``.
        """
        near = self.build.distribution.group_registers
        known = self.build.nets
        found: dict[str, Sequence[Source]] = {
            port: (near(net, nodes),)
            for port, net in (("busy", "node_busy"), ("section", "node_section"),
                              ("operator_code", "operator_code"))
            if net in known
        }  # fmt: skip
        inputs, columns = NodeInputs.from_placer(placer), self._columns
        for port, numbers in zip(inputs.addresses, placer.address_slots, strict=True):
            used, which = np.unique(numbers[member], return_inverse=True)
            slices = tuple(near(columns.address_name([k], k), nodes) for k in used.tolist())
            found[port] = slices if len(used) == 1 else (SliceChoice(slices, which.ravel()),)
        widths = dict(inputs.widths)
        for name, net, slots, stride in (
            ("word", "counters", placer.word_slots, max(columns.word_bits, default=0)),
            ("valid", "valids", placer.valid_slots, 1),
        ):
            for slot, numbers in enumerate(slots):
                whole, start = near(net, nodes), numbers[member] * stride
                port = f"{name}_{slot}"
                found[port] = (Slice.from_starts(whole.net, whole.number, start, widths[port]),)
        if placer.bit_slots:
            whole = near("columns", nodes)
            found["columns"] = [
                Slice.from_starts(whole.net, whole.number, numbers[member], 1)
                for numbers in placer.bit_slots
            ]
        return found

    def _add_tables(
        self, module: str, placer: BitPlacer, member: IntArray, nodes: IntArray
    ) -> Mapping[str, Sequence[Source]]:
        """Add the ROMs of a module, and return the nets that drive its table inputs.

        A key of the result is the name of an input, such as ``table_0``; the value has one source
        for all `nodes`. A ROM holds control values of a node, such as select bits. Nodes of one
        *kind* have equal ROMs. `placer` has the ROMs of each kind, numbered from 0, and
        ``member[k]`` is the number of the kind of ``nodes[k]``. In place of a ROM with one word,
        the input gets a constant. A writable table is not added here, because the adapter adds it.
        """
        build = self.build
        found: dict[str, Sequence[Source]] = {}
        for number, table in enumerate(placer.tables):
            width, bits = len(table.columns), self._row_bits
            if table.name:
                found[f"table_{number}"] = (Slice(f"{table.name}_row_{{}}", nodes, 0, width),)
                continue
            contents, of_member = table.distinct_contents(bits)
            which = of_member[member]
            if not (table.by_row or table.by_choice):
                found[f"table_{number}"] = (
                    _constant_source(np.array([row[0] for row in contents], object)[which], width),
                )
                continue
            address: list[Slice] = []
            if table.by_row:
                address.append(self._row_signal(table, member, nodes))
            if table.by_choice:
                address.append(Slice("choice_{}", nodes, 0, address_width(self.kinds.n_choices)))
            name = f"{module}_table_{number}_{{}}"
            build.add_roms(
                f"rom_{name}",
                nodes,
                contents=contents,
                which=which,
                width=width,
                address=address,
                output=name,
            )
            found[f"table_{number}"] = (Slice(name, nodes, 0, width),)
        return found

    def _row_signal(self, table: NodeTable, member: IntArray, nodes: IntArray) -> Slice:
        """Return the net that addresses a ROM at some nodes: the delayed row number.

        The sequencer sends the number of the present row with several delays, of which each kind of
        nodes needs one. A *kind* of nodes are nodes with equal control values. ``member[k]`` is the
        number of the kind of ``nodes[k]`` among the kinds that `table` serves.
        """
        numbers = np.array([self._columns.rows.index(each) for each in table.delays.distinct])
        whole = self.build.distribution.group_registers("rows", nodes)
        start = numbers[table.delays.which[member]] * self._row_bits
        return Slice.from_starts(whole.net, whole.number, start, self._row_bits)

    @property
    def _row_bits(self) -> int:
        """Bits of a row number."""
        return row_bits(self.rows)

    def _add_links(self) -> None:
        """Add a delay line for each arc that takes several cycles."""
        build, width = self.build, self.width
        cycles_of = self.program.topology.cycles_of_arc[self.nodes]
        there, port = build.sending_ports
        used = np.zeros((len(self.nodes), self._settings.ports), bool)
        used[there[there >= 0], port[there >= 0]] = True
        for at in range(self._settings.ports):
            for cycles in np.unique(cycles_of[:, at][cycles_of[:, at] > 1]).tolist():
                from ..links import Link

                nodes = np.flatnonzero((cycles_of[:, at] == cycles) & used[:, at])
                build.add_module(f"link_{cycles}", partial(Link, cycles, width), role=Role.LINK)
                build.add_array(
                    f"link_from_{{}}_{at}",
                    f"link_{cycles}",
                    nodes,
                    inputs={"sent": (Slice("tx_{}", nodes, at * width, width),)},
                    outputs={"arrived": (f"arrived_{at}_{{}}", width)},
                )


def _constant_source(values: IntArray, width: int) -> Source:
    """Return the driver of an input of `width` bits that is ``values[k]`` at instance k.

    The driver is a single constant if all values are equal.
    """
    if len({*values.tolist()}) == 1:
        return Constant(int(values[0]), width)
    return Constants(values.astype(np.int64), width)
