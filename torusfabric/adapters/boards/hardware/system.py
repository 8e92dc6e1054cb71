# amaranth: UnusedElaboratable=no
"""A fabric on several boards, and the netlist of each board.

`BoardSystem` is the fabric; simulation, Verilog, proof and bridges start from it. The netlist of a
board is made by `BoardFront`. It holds::

    host port    to the memories of the nodes of the board
    nodes        of one block, with the same sequencer and program as on one chip
    links        transmitter, elastic buffer and receiver for each cut arc (see `links`)
    control      common start, repetition after a loss, verdict (see `control`)

Boards with equal netlists are of one *kind*.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ....contract.adapter import System
from ....contract.node_block import NodeBlock
from ....errors import InputError
from ....rtl.fabric import Fabric
from ....rtl.front import Front, FrontFacts
from ....rtl.netlist import Constant, Leaf, Part, Parts, Role, add_single_instance
from ....toolchain.public import public_class
from ...host.front import HostFront
from ...host.interface import PORTS as HOST_PORTS
from ..options import ADAPTER
from .control import BoardControl
from .link_plan import PARALLEL, START_TIMEOUT, LinkPlan, Phy
from .links import ElasticBuffer, Receiver, Transmitter
from .narrow import FlitJoiner, FlitSplitter
from .ports import BOARD_PORTS, LINK_PORTS, REGISTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....rtl.core.core import CoreBuilder
    from ....rtl.netlist import Netlist
    from ....topology.boards import Boards

__all__ = ["BoardFront", "BoardSystem", "link_port_name", "plan_links"]

#: Prefix of the control and status nets between the board control and the sequencer.
RUN_PREFIX = "run_"

#: Prefix of nets from the board control to the host port, until the ports of the board exist.
BOARD_PREFIX = "board_"

#: Status ports of the fabric that the board control drives instead of the sequencer.
STATUS_OUTPUTS = ("busy", "done", "cycles", "error")

#: Outputs of each receiver that are inputs of the board control.
RECEIVER_OUTPUTS = ("said", "heard", "strange", "alive", "lost")


def link_port_name(link: int, name: str) -> str:
    """Return the name of the signal `name` of link port number `link`, as ``link_3_tx_word``."""
    return f"link_{link}_{name}"


class BoardFront(Front):
    """The hardware of one board: its nodes with a host port, its links and its control.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    board : int
        Number of the board whose nodes are built.
    plan : LinkPlan, optional
        Dimensions of the links of the board, by default those of links between all boards.
    for_bus : bool
        True if the host port lies behind a bus.
    """

    #: True if the board has an input `withdraw` that takes back a start.
    withdraws = False

    def __init__(
        self,
        system: BoardSystem,
        board: int,
        *,
        plan: LinkPlan | None = None,
        for_bus: bool = False,
    ) -> None:
        fabric, boards = system.fabric, system.boards
        cut = NodeBlock(boards.nodes_by_board, board, boards.link_ports)
        self._front = front = fabric.front.front_of_part(
            cut, for_bus=for_bus, closed_by=BOARD_PREFIX
        )
        super().__init__(front.core, front.layouts)
        self.top, self.windows, self.tables = front.top, front.windows, front.tables
        self._plan, self._board = plan or system.link_plan, board

    @property
    def digest(self) -> int:
        """The number by which software recognises the fabric, the same on all boards."""
        return self._front.digest

    def add_hardware(self) -> FrontFacts:
        """Add the nodes with their host port, the board control and the links to the netlist.

        The nets `start` and `busy` of the board close the host port to writes, not those of the
        sequencer. Why: the run begins some time after the start of the board, and may be repeated.
        """
        build, plan, front = self.core.build, self._plan, self._front
        built = front.add_hardware()
        inputs, outputs = build.turn_ports_into_nets(
            {name: RUN_PREFIX + name for name in ("start", *front.sampled_inputs, *STATUS_OUTPUTS)}
            | {BOARD_PREFIX + name: name for name in ("start", "busy")}
            | {"block": "board"}
        )
        inputs["board"] = inputs.pop("block")
        for name, width in (inputs | ({"withdraw": 1} if self.withdraws else {})).items():
            build.add_input(name, width)
        for name, width in outputs.items():
            if name not in STATUS_OUTPUTS:
                build.add_output(name, width)
        build.outermost.add("board")
        build.declared |= {**HOST_PORTS, **built.interface.ports, **BOARD_PORTS}
        build.registers += REGISTERS
        make = partial(BoardControl, plan, error="error" in outputs, withdraws=self.withdraws)
        heard: dict[str, Parts] = {}
        for name in RECEIVER_OUTPUTS:
            bits = len(getattr(make(), name)) // plan.n_links
            heard[name] = tuple(Part(f"{name}_{link}", 0, bits) for link in range(plan.n_links))
        add_single_instance(build, "board_control", Role.FAR_LINK, make, heard)
        for name in (*STATUS_OUTPUTS, "failed", "attempts"):
            build.add_output(name, build.nets[name])
        for link in range(plan.n_links):
            _add_link(build, plan, self._board, link)
        return built


def _add_link(build: CoreBuilder, plan: LinkPlan, board: int, link: int) -> None:
    """Add the transmitter, the elastic buffer and the receiver of one link port.

    `build` is the netlist of the board under construction, whose number is `board`. `plan` has the
    widths and latencies of all links, and `link` is the number of the link port.
    """
    (node, port), latency, fields = (
        plan.boards.link_ports[link],
        plan.cable_latency(board, link),
        plan.message_layout,
    )
    ports = {name: link_port_name(link, name) for name in LINK_PORTS}
    build.outermost.update(ports.values())
    for name, declared in LINK_PORTS.items():
        clock = ports["rx_clk"] if name.startswith("rx") else "clk"
        build.declared[ports[name]] = declared._replace(clock=clock)
    own = ("at", "head", "count", *RECEIVER_OUTPUTS)
    nets = ports | {name: f"{name}_{link}" for name in own} | {"received": f"link_rx_{link}"}
    nets |= {name: f"{name}_{latency}" for name in ("due", "check_due")}
    flit = (Part(f"tx_{node}", port * plan.flit_bits, plan.flit_bits),)
    sends: dict[str, Parts] = {"sent": flit, "link": (Constant(link, fields["link"].width),)}
    takes: dict[str, Parts] = {"peer": (Part("peers", link * plan.sender_bits, plan.sender_bits),)}
    far: tuple[tuple[str, str, Callable[[], Leaf], dict[str, Parts]], ...] = (
        ("transmitter", "transmitter", partial(Transmitter, plan), sends),
        (f"buffer_{latency}", "buffer_at", partial(ElasticBuffer, plan, latency), {}),
        (f"receiver_{latency}", "receiver_at", partial(Receiver, plan, latency), takes),
    )
    if plan.parts > 1:
        sends["sent"] = (Part(f"part_{link}", 0, plan.width),)
        nets |= {"part": f"part_{link}", "joined": f"link_rx_{link}", "received": f"came_{link}"}
        parts: dict[str, Parts] = {"flit": flit, "sends": (Part(f"sends_{node}", port, 1),)}
        came: dict[str, Parts] = {"came": (Part(f"came_{link}", 0, plan.width),)}
        far += (
            ("splitter", "splitter", partial(FlitSplitter, plan), parts),
            ("joiner", "joiner", partial(FlitJoiner, plan), came),
        )
    for name, at, make, inputs in far:
        members = make().signature.members.items()
        build.add_ports({ports[port]: member for port, member in members if port in ports})
        role = Role.BUFFER if at == "buffer_at" else Role.FAR_LINK
        add_single_instance(build, name, role, make, inputs, nets, f"{at}_{link}")


def plan_links(fabric: Fabric, boards: Boards, **how: Any) -> LinkPlan:
    """Return the dimensions of the links of a fabric on boards, without a check of latencies.

    Parameters
    ----------
    fabric : Fabric
        The fabric on one chip.
    boards : Boards
        Blocks of the topology of the fabric.
    **how
        Further parameters of `LinkPlan`: ppm, retries, phy, start_timeout.

    Returns
    -------
    LinkPlan
        Dimensions. `LinkPlan.check_limits` compares them with the latencies of the arcs between
        boards.
    """
    # Writable tables have no strobe of a flit, by which it is cut into parts.
    word = -(-fabric.width // (1 if fabric.tables else boards.link_spacing))
    return LinkPlan(
        boards,
        fabric.width,
        {**fabric.front.sampled_inputs, **fabric.front.agreed},
        longest=fabric.front.longest_run,
        hold=fabric.hold,
        parts=-(-fabric.width // word),
        **how,
    )


@public_class
@dataclass(frozen=True)
class BoardSystem(System):
    """A fabric with a host port, whose nodes lie on several boards.

    Each board has a host port to its own nodes, and a sequencer that steps through the program of
    the whole fabric. Arcs between blocks are cut and end at link ports.

    Parameters
    ----------
    fabric : Fabric
        The same fabric on one chip. It determines the results and the cycles of a run.
    boards : Boards
        Blocks of the topology of the fabric.
    ppm : float
        Largest frequency error of each oscillator, in millionths.
    retries : int
        Number of times a run is repeated if a link lost a word.
    phy : Phy
        Physical layer of the links between boards.
    start_timeout : int
        Most cycles for which a start waits for the other boards; 0 for no limit.

    Raises
    ------
    InputError
        If the top of the fabric is not the host port, a run is too long for the drift of the
        clocks, or a link does not fit; see `LinkPlan`.

    Examples
    --------
    Both boards have equal netlists, of kind 0, and each has 8 link ports.

    >>> import torusfabric as tf
    >>> from torusfabric.topology.boards import Boards
    >>> torus = tf.Torus(4, 4, link_latency="0:20")
    >>> fabric = tf.Fabric(tf.compile(tf.plan(torus, "allgather")), width=8)
    >>> system = BoardSystem(fabric, Boards.parse("2x1", torus))
    >>> system.kinds_of_boards, len(system.link_plan.boards.link_ports)
    ((0, 0), 8)
    """

    adapter = ADAPTER

    fabric: Fabric
    boards: Boards
    ppm: float = 100.0
    retries: int = 1
    phy: Phy = PARALLEL
    start_timeout: int = START_TIMEOUT

    def __post_init__(self) -> None:
        if self.fabric.front.name != HostFront.top:
            raise InputError(f"Top must be host for several boards, not {self.fabric.front.name}")
        longest, taken = self.fabric.front.longest_run, self.fabric.predicted_cycles
        if taken > longest:
            raise InputError(
                f"Runs must take at most {longest} cycles on these boards, whose clocks drift "
                f"apart, not {taken}; choose shorter messages"
            )
        self.link_plan.check_limits()

    @cached_property
    def link_plan(self) -> LinkPlan:
        """Dimensions of the links between the boards."""
        names = ("ppm", "retries", "phy", "start_timeout")
        return plan_links(self.fabric, self.boards, **{name: getattr(self, name) for name in names})

    @property
    def _latency_text(self) -> str:
        """The latency of all links as a user writes it, that of single links behind a comma."""
        torus = self.boards.torus
        return ",".join([torus.latency_text, *getattr(torus, "slow_links", ())])

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the common start to done of the longest run."""
        return self.link_plan.total_cycles(self.fabric.predicted_cycles)

    def facts(self) -> dict[str, Any]:
        """Return the entries of a manifest about boards and links, such as ``link_ports``."""
        plan = self.link_plan
        return {
            "boards": str(self.boards),
            "link_latency": self._latency_text,
            "link_ports": plan.n_links,
            "buffer_words": plan.buffer_depths,
            **plan.facts(),
        }

    def facts_text(self) -> dict[str, str]:
        """Return a text for each property of boards and links, keyed by a title for people."""
        plan = self.link_plan
        depths = ", ".join(f"{plan.buffer_depth(each)} of {each} cycles" for each in plan.latencies)
        ports = f"{plan.n_links} link ports"
        if plan.parts > 1:
            ports += f" of {plan.width} bits, a flit in {plan.parts} words,"
        return {
            "boards": f"{self.boards}, of {ports} each",
            "link latency": self._latency_text,
            "elastic buffers": f"{depths}; clocks within {self.ppm:g} ppm drift apart by "
            f"{round(plan.drift_words, 3):g} words at most",
            "overhead": f"{plan.attempt_overhead} cycles an attempt, of up to {self.retries + 1}",
        }

    @cached_property
    def netlists(self) -> tuple[Netlist, ...]:
        """The netlist of each board; boards of one kind share one netlist object."""
        known: dict[str, Netlist] = {}
        found = map(self._build_netlist, range(self.boards.n_boards))
        return tuple(
            known.setdefault(repr((n.inputs, n.outputs, [*n.modules], [*n.instances])), n)
            for n in found
        )

    def with_constant_tables(self) -> BoardSystem:
        """Return a copy of the system in which loaded tables are constants.

        The constants are the contents of the image of the fabric. Proofs use this copy. A system
        without loaded tables is returned unchanged.
        """
        if not self.fabric.tables:
            return self
        held, found = self.fabric.tables.proofs.constant_table_netlist, copy(self)
        netlists = {netlist: held(netlist) for netlist in self.netlists}
        found.__dict__["netlists"] = tuple(netlists[each] for each in self.netlists)
        return found

    @property
    def kinds_of_boards(self) -> tuple[int, ...]:
        """The kind of each board, a number from 0; boards with equal netlists are of one kind.

        For example (0, 1, 0): boards 0 and 2 have equal netlists.
        """
        kinds = [*dict.fromkeys(self.netlists)]
        return tuple(map(kinds.index, self.netlists))

    @property
    def read_latency(self) -> int:
        """Clock edges from an address at the host port of a board until its word is output."""
        latency: int = self.netlists[0].modules["host"]().read_latency
        return latency

    def _build_netlist(self, board: int) -> Netlist:
        """Build the netlist of the board with the number `board`."""
        front = BoardFront(self, board)
        front.add_hardware()
        return front.core.build.make_netlist()
