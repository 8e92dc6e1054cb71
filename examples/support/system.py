"""Systems: a fabric with a processing element at each node, in one netlist.

A *system* is a fabric whose streams end at processing elements, all of one class. A *conductor*
gives the fabric the commands of its runs. The host sees a memory port of each element, and a few
signals: `begin_job` starts a job, `busy` is high until all elements have ended it, and `cycles`
counts the cycles in between. The statuses of the runs leave by the stream `m_axis_status`.

All modules are in the netlist of the fabric. A system is therefore simulated, emitted as Verilog,
and synthesized as a fabric is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

import torusfabric as tf
from torusfabric.adapters.streams.front import StreamFront
from torusfabric.adapters.streams.ports import needs_commands
from torusfabric.adapters.streams.sections import tree_levels
from torusfabric.contract.interface import Interface
from torusfabric.contract.ports import Port, Protocol
from torusfabric.rtl import fabric as rtl
from torusfabric.rtl.arrays import Constants, Slice, Source
from torusfabric.rtl.front import Front, FrontFacts
from torusfabric.rtl.modules import Leaf
from torusfabric.rtl.netlist import Role, add_single_instance

__all__ = ["Element", "ElementShape", "System"]

#: The signals of a stream, each with the field of an Amaranth payload that it carries.
SIGNALS = {"tdata": "data", "tlast": "last", "tdest": "destination", "tid": "origin"}

#: The words of a command after its first word, the mode; zeros leave all choices to the packets.
FURTHER_WORDS = 4


class ElementShape(NamedTuple):
    """The widths of the ports of an element, in bits.

    Parameters
    ----------
    word : int
        A word of the two streams: one or several flits.
    destination : int
        The destination of a sent word; 0 if words have none.
    node : int
        The number of a node.
    address, data : int
        An address and a word of the memory port.
    keep : int
        The signal that tells which bytes of a word are valid; 0 if a word is one flit.
    """

    word: int
    destination: int
    node: int
    address: int
    data: int
    keep: int


class Element(wiring.Component):
    """Base class of processing elements. A subclass has the method `elaborate`.

    Parameters
    ----------
    shape : ElementShape
        The widths of the ports.

    Members
    -------
    send, receive : stream
        The streams into and out of the fabric. A payload has `data`, `last`, and `destination` (in
        `send`, if words have one) or `origin` (in `receive`).
    node : In
        The number of the node.
    start, done : In(1), Out(1)
        `start` is high for a cycle when a job begins. From the next cycle on, `done` is low until
        the element has ended the job.
    address, write, write_data, read_data : In, Out
        The memory port of the host. `read_data` has the word one cycle after its address.
    """

    # Elements are also made only to read their ports; Amaranth shall not warn of those.
    _MustUse__silence = True

    def __init__(self, shape: ElementShape) -> None:
        self.shape = shape
        payload = {"data": shape.word, "last": 1}
        sent = payload | ({"destination": shape.destination} if shape.destination else {})
        received = payload | {"origin": shape.node}
        super().__init__({
            "send": Out(stream.Signature(StructLayout(sent))), "node": In(shape.node),
            "receive": In(stream.Signature(StructLayout(received))),
            "start": In(1), "done": Out(1, init=1), "address": In(shape.address), "write": In(1),
            "write_data": In(shape.data), "read_data": Out(shape.data),
        })  # fmt: skip


class Place(Leaf):
    """The module of a netlist that contains an element, with its streams as single signals."""

    #: Ports of the module that are ports of the element, too.
    INPUTS = ("node", "start", "address", "write", "write_data")

    def __init__(self, make: Callable[[ElementShape], Element], shape: ElementShape) -> None:
        self._make, self._shape = make, shape
        widths = {"tdata": 8 * -(-shape.word // 8), "tvalid": 1, "tlast": 1}
        members = make(shape).signature.members
        super().__init__(
            {f"in_{name}": In(bits) for name, bits in (widths | {"tid": shape.node}).items()}
            | {f"out_{name}": Out(bits) for name, bits in widths.items()}
            | {"out_tdest": Out(shape.destination), "out_tkeep": Out(shape.keep)}
            | {"in_tready": Out(1), "out_tready": In(1)}
            | {name: members[name] for name in (*self.INPUTS, "done", "read_data")}
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the element to the signals."""
        m, value = Module(), self.input_value
        m.submodules.element = element = self._make(self._shape)
        receive, send = element.receive, element.send
        m.d.comb += [getattr(element, name).eq(value(name)) for name in self.INPUTS]
        m.d.comb += [receive.valid.eq(value("in_tvalid")), self.in_tready.eq(receive.ready),
                     self.out_tvalid.eq(send.valid), send.ready.eq(value("out_tready")),
                     self.done.eq(element.done)]  # fmt: skip
        # Why a register: a path from a memory to the host would be the critical path.
        m.d.sync += self.read_data.eq(element.read_data)
        for name, field in SIGNALS.items():
            if f"in_{name}" in self.signature.members:
                m.d.comb += receive.payload[field].eq(value(f"in_{name}"))
            if f"out_{name}" in self.signature.members:
                m.d.comb += getattr(self, f"out_{name}").eq(send.payload[field])
        if self._shape.keep:
            m.d.comb += self.out_tkeep.eq(-1)
        return m


class Conductor(Leaf):
    """The module that commands the runs of a job, and counts its cycles.

    Parameters
    ----------
    modes : sequence of int
        The mode of each run, in their order; empty if runs need no commands.
    repeat : int
        The number of times that these runs follow one another in a job.
    nodes : int
        Number of elements.
    """

    def __init__(self, modes: Sequence[int], repeat: int, nodes: int) -> None:
        self._modes, self._repeat = modes, repeat
        commands = {"s_axis_cmd_tdata": Out(32), "s_axis_cmd_tvalid": Out(1),
                    "s_axis_cmd_tlast": Out(1), "s_axis_cmd_tready": In(1),
                    "m_axis_status_tready": Out(1)}  # fmt: skip
        counted = {"begin_job": In(1), "done": In(nodes), "busy": Out(1), "cycles": Out(32)}
        super().__init__(counted | (commands if modes else {}))

    def elaborate(self, platform: object) -> Module:
        """Build the counter of cycles and, if there are commands, what sends them."""
        m, start, started = Module(), self.input_value("begin_job"), Signal()
        m.d.sync += [started.eq(start), self.cycles.eq(self.cycles + self.busy)]
        # A cycle after `begin_job` the outputs `done` are still high.
        with m.If(start):
            m.d.sync += [self.busy.eq(1), self.cycles.eq(0)]
        with m.Elif(self.input_value("done").all() & ~started):
            m.d.sync += self.busy.eq(0)
        if self._modes:
            self._send_commands(m, start)
        return m

    def _send_commands(self, m: Module, start: Value) -> None:
        """Send a command for each run: its mode, and zeros."""
        runs, last = len(self._modes) * self._repeat, len(self._modes) - 1
        left, at = Signal(range(runs + 1)), Signal(range(len(self._modes)))
        word, ends = Signal(range(FURTHER_WORDS + 1)), self.s_axis_cmd_tlast
        m.d.comb += [self.s_axis_cmd_tvalid.eq(left != 0), ends.eq(word == FURTHER_WORDS),
                     self.s_axis_cmd_tdata.eq(Mux(word == 0, Array(self._modes)[at], 0)),
                     self.m_axis_status_tready.eq(1)]  # fmt: skip
        with m.If(start):
            m.d.sync += [left.eq(runs), at.eq(0)]
        with m.Elif((left != 0) & self.input_value("s_axis_cmd_tready")):
            m.d.sync += word.eq(Mux(ends, 0, word + 1))
            with m.If(ends):
                m.d.sync += [left.eq(left - 1), at.eq(Mux(at == last, 0, at + 1))]


class SystemFront(Front):
    """A fabric with streams, an element at each node, and a conductor.

    Parameters
    ----------
    front : StreamFront
        The fabric with streams.
    element : class
        The class of the elements, a subclass of `Element`.
    memory : (int, int)
        Bits of an address and of a word of the memory ports.
    conductor : function of (int)
        Makes the conductor for a number of nodes.
    """

    top = "system"

    def __init__(
        self, front: StreamFront, element: Callable[[ElementShape], Element],
        memory: tuple[int, int], conductor: Callable[[int], Conductor],
    ) -> None:  # fmt: skip
        super().__init__(front.core, front.layouts)
        self._front, self._element = front, element
        self._conductor, self._memory = conductor, memory

    def add_hardware(self) -> FrontFacts:
        """Add the fabric, then connect its streams to elements, and its commands to a conductor."""
        net, built = self.core.build, self._front.add_hardware()
        outer = {name: f"fabric_{name}" for name in ("busy", "done", "cycles", "error")}
        inputs, outputs = net.turn_ports_into_nets(outer, nodes=True)
        shape = ElementShape(
            self.core.width * self.core.beat, inputs.get("s_axis_0_tdest", 0),
            outputs["m_axis_0_tid"], *self._memory, keep=inputs.get("s_axis_0_tkeep", 0),
        )  # fmt: skip
        net.add_input("begin_job")
        nodes, make = np.arange(net.nodes), partial(Place, self._element, shape)
        ports = make().signature.members
        for node in nodes.tolist():
            for name in ("address", "write", "write_data"):
                net.add_input(f"element_{name}", ports[name].shape, node=node)
            net.add_output("element_read_data", shape.data, node=node)

        def net_of(port: str) -> str:
            side, _, name = port.partition("_")
            stream_of = {"in": "m_axis", "out": "s_axis"}
            return f"{stream_of[side]}_{{}}_{name}" if side in stream_of else f"element_{port}_{{}}"

        every: dict[str, Source] = {"node": Constants(nodes, shape.node),
                                    "start": Slice("begin_job", None, 0, 1)}  # fmt: skip
        net.add_module("element", make, role=Role.OTHER)
        net.add_array(
            "element_at_{}", "element", nodes,
            inputs={name: (every.get(name) or Slice(net_of(name), nodes, 0, port.shape),)
                    for name, port in ports.items() if port.flow is In},
            outputs={name: (net_of(name), port.shape)
                     for name, port in ports.items() if port.flow is Out},
        )  # fmt: skip
        done = tuple(part for k in nodes for part in net.low_bits(f"element_done_{k}", 1))
        add_single_instance(net, "conductor", Role.OTHER, partial(self._conductor, len(nodes)),
                            {"done": done})  # fmt: skip
        for name in ("busy", "cycles", *(name for name in outputs if "status" in name)):
            net.add_output(name, net.nets[name])
        net.declared |= {net.shared_name(name): Port("control", Protocol.LEVEL, "of the system")
                         for name in (*net.inputs, *net.outputs)}  # fmt: skip
        return built._replace(interface=Interface())


class System(rtl.Fabric):
    """A fabric with an element at each node.

    Parameters
    ----------
    program : Program
        The program of the fabric, as `tf.compile` returns it.
    element : class
        The class of the elements, a subclass of `Element`.
    width, beat : int
        Bits of a flit, and flits of a word of the streams.
    memory : (int, int)
        Bits of an address and of a word of the memory ports of the elements.
    modes : sequence of int
        The mode of each run of a job; by default one run of each mode.
    repeat : int
        The number of times that these runs follow one another in a job.
    """

    def __init__(
        self, program: tf.Program, element: Callable[[ElementShape], Element], *,
        width: int, memory: tuple[int, int], beat: int = 1, modes: Sequence[int] = (),
        repeat: int = 1,
    ) -> None:  # fmt: skip
        runs = tuple(modes or range(len(program.modes))) if needs_commands(program) else ()
        front, conductor = StreamFront(program, width, beat), partial(Conductor, runs, repeat)
        super().__init__(SystemFront(front, element, memory, conductor))

    @property
    def begin_cycles(self) -> int:
        """Cycles from the last word that an element sends to the first cycle of the run."""
        return 3 + tree_levels(self.nodes)

    @property
    def arrive_cycles(self) -> int:
        """Cycles from the cycle after a run to that in which its first word arrives."""
        return self.front.core.memory_port.read_cycles - 1
