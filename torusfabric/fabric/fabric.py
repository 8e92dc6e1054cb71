# amaranth: UnusedElaboratable=no
"""Fabrics as users make them: each choice is the business of one adapter."""

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
from ..toolchain.values import Choice, flag, natural, of_type, shown

__all__ = ["Fabric", "Top"]

#: Cycles of the longest timeout: a counter of 32 bits.
MOST_TIMEOUT = 2**32 - 1


class Top(Choice):
    """The interface of a fabric."""

    #: One memory-mapped port serves all nodes.
    HOST = "host"
    #: Every node has ports of its own.
    CORE = "core"
    #: Every node has a stream of what it sends, and one of what it receives.
    STREAM = "stream"


@public_class
class Fabric(rtl.Fabric):
    """The hardware of a program.

    It is a component: it can be a submodule of a design, be simulated in a testbench, and be
    converted. Everything is in the domain ``sync``. Engines and the `verilog` room read the same
    structure from `netlist`.

    Parameters
    ----------
    width : int
        Bits of a flit, 1 to 1024.
    top : {"host", "core", "stream"} or Top
        Whether one memory-mapped port serves all nodes, or every node has ports of its own: to its
        memories, or streams; see `torusfabric.adapters.streams`.
    prefix : str
        What the names of all modules begin with in Verilog, up to 64 letters, digits and
        underscores. Fabrics with different prefixes can be parts of one design.
    bus : {"wishbone", "axi-lite", "axi4"}, optional
        What the host port stands behind; with streams, what shows how runs go and sends commands.
    clocks : {"one", "per-node"} or Clocks
        Of the streams of nodes: that of the fabric, or each node one of its own; stream top only.
    beat : int or "auto"
        Flits of a word of the streams of nodes, of the host port and the bus behind it, or of the
        ports of a core with memories, a power of two. By default the least with which streams do
        not limit the runs, else 1.
    timeout : int
        Cycles after which a node is named, by `stalled_node`, that has not sent its message, or not
        taken what it has received, while no run is under way; 0 for never. Stream top only.
    tables : {"rom", "ram"}, Room or Image
        Whether what nodes do is fixed, or loaded; then a room says what there is room for, by
        default what the program needs, or an image what is there at first. Not of a core.
    empty : bool
        Whether an image has to be loaded first; else the program is there at first.

    Attributes
    ----------
    interface : Interface
        What the adapter in front of the core says of its ports.
    answer : int
        Cycles from a read at the inputs of a node to its word.
    core : Core
    hold : int
        Clock edges by which a run begins later if it is started with the edge after a write of the
        host; one fewer for each edge between.
    operator_unit : OperatorUnit or None
        What combines words, where anything can, whatever is loaded.

    Members
    -------
    start : In(1)
        A pulse of one cycle starts a run; ignored while busy.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the begin of the run to done. A run begins with its start; behind a host
        port up to `hold` edges later, if words that were written just before are on their way.
    host_we, host_node, host_addr, host_wdata : In
        One write an edge into a node's memory; host top only.
    host_rdata : Out(width)
        The word at `host_node`, `host_addr`, `read_latency` edges later; host top only.
    length : In
        Flits of the messages of a run, sampled with `start`, where it is chosen anew for each.
    operation : In
        The number of an operator, sampled with `start`, where there are several.
    error : Out(4)
        Why the last start was not carried out, where `length`, `root` or `operation` is chosen: 2
        for a root that is no node, 3 for a length that is 0 or too long, 4 for an operator that
        there is not, 5 because a run was under way; else 0.
    round : Out
        The row of the program that is under way, where `length` is chosen.
    root : In
        The root, sampled with `start`, where any is possible; in groups, its position in each.
    node : array of (send : In(stream), receive : Out(stream))
        The streams of each node, in place of `start` and what is sampled with it; stream top only.
        Payloads have `data`, `last`, and `destination` or `origin`. Of a core, the ports of each
        node by their names without its number: `node[3].read_data` is `read_data_3`.
    command : In(stream)
    status : Out(stream)
        Streams of words, where runs choose a mode, a root or an operator; stream top only.

    Raises
    ------
    InputError
        If the width is out of range, or the prefix cannot begin a name.

    Examples
    --------
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
        of_type("Program", program, Program, "a Program, as tf.compile returns it")
        self._given: dict[str, Any] = {
            "width": width, "top": top, "prefix": prefix, "bus": bus, "clocks": clocks,
            "beat": beat, "timeout": timeout, "tables": tables, "empty": empty,
        }  # fmt: skip
        self._given_program = program
        rtl.check_prefix(prefix)
        self.clocks, self.empty = Clocks(clocks), flag("Empty", empty)
        self.timeout = natural("Timeout", timeout, most=MOST_TIMEOUT)
        super().__init__(self._front(), prefix=prefix)
        if self.top == Top.CORE:
            self.node = self._ports_of_nodes()

    def _front(self) -> Front:
        """Return the front that the choices ask for."""
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
                raise InputError(f"Tables must be rom or ram, not {shown(tables)}")
            if top is Top.CORE:
                raise InputError(f"Tables must be rom for a fabric with the top {top}, not ram")
            loading = adapter_object("tables")(
                program, tables, width, given["beat"], streams=top is Top.STREAM, empty=self.empty
            )
            front = adapter_object("loaded")(loading, **how)
        whole: Front = adapter_object("behind a bus")(bus, front) if bus else front
        return whole

    def __reduce__(self) -> tuple[Callable[..., Fabric], tuple[Program]]:
        """A fabric is pickled as what it is made from, and made anew: hardware is functions."""
        return partial(type(self), **self._given), (self._given_program,)

    @classmethod
    def holding(cls, image: Any, *, bus: str | None = None, empty: bool = False) -> Fabric:
        """Return the fabric of an image; it holds the image or, if empty, waits for it."""
        top = Top.STREAM if image.room.streams else Top.HOST
        return cls(image.program, width=image.width, top=top, bus=bus, tables=image, empty=empty)

    @property
    def room(self) -> Any:
        """The limits of images, where tables are loaded, else None."""
        return self.tables and self.tables.room

    @cached_property
    def image(self) -> Any:
        """The image that a fabric was made with, where tables are loaded.

        Raises
        ------
        InputError
            If they are not.
        """
        if self.tables is None:
            raise InputError("Tables must be ram for an image, not rom")
        return self.tables.image

    def behind(self, ports: str | None) -> Fabric:
        """Return a fabric that carries out the same behind another bus, or none."""
        how: dict[str, Any] = {"tables": self.image, "empty": self.empty} if self.room else {}
        return type(self)(self.program, width=self.width, top=self.top, bus=ports, **how)

    def with_program(self, program: Program) -> Fabric:
        """Return a fabric with the same choices that carries out another program."""
        return type(self)(program, **self._given | {"beat": self.beat, "tables": "rom"})

    def _ports_of_nodes(self) -> tuple[SimpleNamespace, ...]:
        """The ports of each node of a core, by their names without its number."""
        found: list[dict[str, Any]] = [{} for _ in range(self.nodes)]
        for port in (*self.netlist.inputs, *self.netlist.outputs):
            name, _, node = port.rpartition("_")
            if node.isdecimal():
                found[int(node)][name] = getattr(self, port)
        return tuple(SimpleNamespace(**ports) for ports in found)


def _check_top(program: Program, top: Top, *, bus: bool, clocks: Clocks, timeout: int) -> None:
    """Check that a top is one for a program, and for what else is wanted.

    Raises
    ------
    InputError
        If it is not.
    """
    kind = program.schedule.collective.kind
    of_host = {
        "messages of any length": program.any_length,
        f"{kind} from any root": program.form.part_is_root,
        "several operators": len(program.operators) > 1,
    }
    for what, wanted in of_host.items():
        if wanted and top is Top.CORE:
            raise InputError(f"Top must be host for {what}, not core")
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
