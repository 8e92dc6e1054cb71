# amaranth: UnusedElaboratable=no
"""`Fabric`, the class by which users build hardware: a program, and the choices of its ports.

The *front* of a fabric is the object that builds the ports around the core; see
`torusfabric.rtl.front`. This module only selects the front for `top`, `bus` and `tables`. The base
class `torusfabric.rtl.fabric.Fabric` holds the netlist and all that simulators, proofs and the
emitter of Verilog read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

from ..adapters import adapter_object
from ..adapters.streams.options import Clocks
from ..errors import InputError
from ..program import Program
from ..program.program import require_width
from ..rtl import fabric as rtl
from ..rtl.flit_rows import AUTO
from ..rtl.front import Front
from ..toolchain.public import public_class
from ..toolchain.values import (
    Choice,
    message_text,
    parse_non_negative_int,
    require_bool,
    require_type,
)

__all__ = ["Fabric", "Top"]

#: Longest timeout in cycles, limited by a counter of 32 bits.
MOST_TIMEOUT = 2**32 - 1


class Top(Choice):
    """The option ``top``: a fabric has a host port, plain ports at each node, or streams."""

    #: One memory-mapped port serves all nodes.
    HOST = "host"
    #: Every node has ports of its own, to its memories or for its words.
    CORE = "core"
    #: Every node has one stream of words to send, and one of received words.
    STREAM = "stream"


@public_class
class Fabric(rtl.Fabric):
    """The hardware of a program, as an Amaranth component.

    A fabric can be a submodule of a design, be simulated in a testbench, and be converted to
    Verilog. All registers are in the domain ``sync``, except where `clocks` gives nodes clocks of
    their own. Simulators and the Verilog emitter read the same structure from `netlist`.

    Parameters
    ----------
    program : Program
        The program that the nodes execute, as `compile` returns it.
    width : int
        Bits of a flit, 1 to 1024.
    top : {"host", "core", "stream"} or Top
        Ports of the fabric: ``host`` is one memory-mapped port for all nodes, ``core`` has ports at
        each node, to its memories or for its words, and ``stream`` has one stream in each direction
        at each node; see `torusfabric.adapters.streams`.
    prefix : str
        Beginning of the names of all Verilog modules, up to 64 letters, digits and underscores.
        Fabrics with different prefixes can be parts of one design.
    bus : {"wishbone", "axi-lite", "axi4"}, optional
        Bus through which a processor reaches the fabric. With the host top, memories and registers
        are mapped on the bus; with the stream top, registers that show the state of runs and send
        commands.
    clocks : {"one", "per-node"} or Clocks
        Clock of the node streams: the fabric clock, or an own clock for each node. Stream top only.
    beat : int or "auto"
        Flits of a port word, a power of two: of the node streams, of the host port and its bus, or
        of the memory ports of a core. ``auto`` is the smallest beat with which streams do not limit
        the runs, and 1 for other tops.
    timeout : int
        Cycles, while no run is under way, after which `stalled_node` names a node that has not sent
        its message or not taken its received words; 0 for never. Stream top only.
    tables : {"rom", "ram"}, Room or Image
        ``rom`` fixes the program in the hardware. Otherwise the program lies in memories that can
        be loaded again: ``ram`` gives them the sizes that the program needs, a `Room` gives the
        sizes, and an `Image` gives sizes and initial contents. Host and stream top only.
    empty : bool
        True if loadable tables are empty after reset, so that an image has to be loaded first;
        False if they hold the program.

    Attributes
    ----------
    interface : Interface
        Declarations of the ports, made by the front.
    answer : int
        Cycles from a read address at the inputs of a node until its word can be read.
    core : Core
        The nodes and the sequencer, without the ports of the adapter.
    hold : int
        Clock edges by which the begin of a run is delayed if `start` follows one edge after a
        write of the host; one fewer for each edge in between.
    operator_unit : OperatorUnit or None
        The unit that combines words; None if no node can combine words.

    Members
    -------
    start : In(1)
        A pulse of one cycle starts a run; ignored while `busy` is high.
    busy, done : Out(1)
        `busy` is high from the edge after the start until `done`; `done` is high until the next
        start.
    cycles : Out(32)
        Clock edges from the begin of the run to `done`. A run begins with its start. With the host
        top it begins up to `hold` edges later if words that were written just before have not
        reached the memories.
    host_we, host_node, host_addr, host_wdata : In
        Write of one word in each cycle into the memory of node `host_node`; host top only.
    host_rdata : Out(width)
        The word at `host_node`, `host_addr`, `read_latency` edges later; host top only.
    length : In
        Flits of the messages of a run, sampled with `start`; only if each run chooses its length.
    operation : In
        Number of the operator of a run, sampled with `start`; only if the program has several.
    error : Out(4)
        Reason for the refusal of the last start, 0 if it was accepted: 2 `root` is no node,
        3 `length` is 0 or too long, 4 `operation` is no operator, 5 a run was under way. Only if
        runs choose `length`, `root` or `operation`.
    round : Out
        Row of the program that is being executed; only if each run chooses its length.
    root : In
        Root of a run, sampled with `start`; only if each run chooses its root. With groups, the
        position of the root in its group.
    node : array of (send : In(stream), receive : Out(stream))
        With the stream top, the two streams of each node; there is then no `start`. A payload has
        `data`, `last`, and `destination` (send) or `origin` (receive), where these are needed.
        With the core top, the ports of each node, named without its number: `node[3].read_data` is
        `read_data_3`.
    command : In(stream)
        Requests for runs; stream top only, if runs choose a mode, a root or an operator.
    status : Out(stream)
        Reports of runs; beside `command`.

    Raises
    ------
    InputError
        If the width is out of range, or the prefix cannot begin a name.

    Examples
    --------
    The fabric has six nodes, and a word can be read at the host port 14 clock edges after its
    address.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(2, 3), "allgather"))
    >>> fabric = tf.Fabric(program, width=8)
    >>> fabric.nodes, fabric.read_latency
    (6, 14)
    """

    def __init__(  # noqa: PLR0913 (one choice of a user each)
        self,
        program: Program,
        *,
        width: int = 32,
        top: Top | str = Top.HOST,
        prefix: str = "",
        bus: str | None = None,
        clocks: Clocks | str = Clocks.ONE,
        beat: int | str = AUTO,
        timeout: int | str = 0,
        tables: Any = "rom",
        empty: bool = False,
    ) -> None:
        require_type("Program", program, Program, "a Program, as tf.compile returns it")
        self._given: dict[str, Any] = {
            "width": width, "top": top, "prefix": prefix, "bus": bus, "clocks": clocks,
            "beat": beat, "timeout": timeout, "tables": tables, "empty": empty,
        }  # fmt: skip
        self._given_program = program
        rtl.check_prefix(prefix)
        self.clocks, self.empty = Clocks(clocks), require_bool("Empty", empty)
        self.timeout = parse_non_negative_int("Timeout", timeout, most=MOST_TIMEOUT)
        super().__init__(self._build_front(), prefix=prefix)
        if self.top == Top.CORE:
            self.node = self._node_ports()

    def _build_front(self) -> Front:
        """Build core and ports, by the class that `top`, `bus` and `tables` select."""
        given, program = self._given, self._given_program
        top, tables = Top(given["top"]), given["tables"]
        width = require_width(given["width"], program.operators)
        self.bus = bus = None if given["bus"] is None else adapter_object("bus")(given["bus"])
        _check_top(program, top, bus=bus is not None, clocks=self.clocks, timeout=self.timeout)
        how: dict[str, Any] = {} if top is Top.CORE else {"for_bus": bus is not None}
        if top is Top.STREAM:
            how |= {"clocks": self.clocks, "timeout": self.timeout}
        if isinstance(tables, str) and tables == "rom":
            front = adapter_object(top.value)(program, width, given["beat"], **how)
        else:
            if isinstance(tables, str) and tables != "ram":
                raise InputError(f"Tables must be rom or ram, not {message_text(tables)}")
            if top is Top.CORE:
                raise InputError(
                    f"Tables must be rom with the top {top}, not ram; for ram choose the top host "
                    "or stream"
                )
            loading = adapter_object("tables")(
                program, tables, width, given["beat"], streams=top is Top.STREAM, empty=self.empty
            )
            front = adapter_object("loaded")(loading, **how)
        whole: Front = adapter_object("behind a bus")(bus, front) if bus else front
        return whole

    def __reduce__(self) -> tuple[Callable[..., Fabric], tuple[Program]]:
        """Pickle the arguments, not the hardware, because the hardware contains local functions."""
        return partial(type(self), **self._given), (self._given_program,)

    @classmethod
    def holding(cls, image: Any, *, bus: str | None = None, empty: bool = False) -> Fabric:
        """Return a fabric with loadable tables of the sizes that an image was made for.

        After a reset the tables hold the image or, if `empty`, nothing.

        Parameters
        ----------
        image : Image
            The image; it contains the sizes of the tables for which it was made.
        bus : {"wishbone", "axi-lite", "axi4"}, optional
            Bus through which a processor reaches the fabric.
        empty : bool
            True if the tables are empty after reset, so that the image has to be loaded.
        """
        top = Top.STREAM if image.room.streams else Top.HOST
        return cls(image.program, width=image.width, top=top, bus=bus, tables=image, empty=empty)

    @property
    def room(self) -> Any:
        """The sizes of the loadable tables, which limit images; None with ``tables="rom"``."""
        return self.tables and self.tables.room

    @cached_property
    def image(self) -> Any:
        """The image that a fabric with loadable tables was built with.

        Raises
        ------
        InputError
            If the fabric was built with ``tables="rom"``.
        """
        if self.tables is None:
            raise InputError(
                "The tables of this fabric are fixed (rom), so it takes no image; build it with "
                "tables ram"
            )
        return self.tables.image

    def behind(self, bus: str | None) -> Fabric:
        """Return a fabric with the same program, width, top and tables, but behind `bus`.

        With None it has no bus. All other choices have their defaults.
        """
        how: dict[str, Any] = {"tables": self.image, "empty": self.empty} if self.room else {}
        return type(self)(self.program, width=self.width, top=self.top, bus=bus, **how)

    def with_program(self, program: Program) -> Fabric:
        """Return a fabric for another program, with the same choices but fixed tables."""
        return type(self)(program, **self._given | {"beat": self.beat, "tables": "rom"})

    def _node_ports(self) -> tuple[SimpleNamespace, ...]:
        """Return, for each node of a fabric with the core top, an object with all its ports.

        The ports are attributes, named without the node number: ``read_data`` for ``read_data_3``.
        """
        found: list[dict[str, Any]] = [{} for _ in range(self.nodes)]
        for port in (*self.netlist.inputs, *self.netlist.outputs):
            name, _, node = port.rpartition("_")
            if node.isdecimal():
                found[int(node)][name] = getattr(self, port)
        return tuple(SimpleNamespace(**ports) for ports in found)


def _check_top(program: Program, top: Top, *, bus: bool, clocks: Clocks, timeout: int) -> None:
    """Check that a program and the other choices of the user are possible with `top`.

    `bus` is True for a fabric behind a bus. `clocks` says if the streams of nodes have the clock of
    the fabric or clocks of their own. `timeout` is the number of cycles after which a late node is
    reported, 0 for never.

    Raises
    ------
    InputError
        If the program or a choice needs another top.
    """
    kind = program.schedule.collective.kind
    of_host = {
        "messages of any length": program.any_length,
        f"{kind} from any root": program.form.has_root_addresses,
        "several operators": len(program.operators) > 1,
    }
    for what, wanted in of_host.items():
        if wanted and top is Top.CORE:
            raise InputError(f"Top must be host or stream for {what}, not core")
    if bus and top is Top.CORE:
        raise InputError("Top must be host or stream for a fabric behind a bus, not core")
    of_stream = {
        "a barrier": program.barrier,
        "clocks of the nodes": clocks is not Clocks.ONE,
        "a timeout of nodes": timeout > 0,
    }
    for what, wanted in of_stream.items():
        if wanted and top is not Top.STREAM:
            raise InputError(f"Top must be stream for {what}, not {top}")
