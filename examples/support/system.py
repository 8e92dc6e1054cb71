"""Systems: a fabric with a processing element at each node, in one netlist.

A *system* is a fabric whose streams end at processing elements, all of one class. A *conductor*
gives the fabric the commands of its runs. The host sees a memory port of each element, and a few
signals: `begin_job` starts a job, `busy` is high until all elements have ended it, and `cycles`
counts the cycles in between. The statuses of the runs leave by the stream `m_axis_status`.

All modules are in the netlist of the fabric. A system is therefore simulated, emitted as Verilog,
and synthesized as a fabric is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

import torusfabric as tf
from torusfabric.adapters.streams.front import StreamFront
from torusfabric.adapters.streams.members import PAYLOAD_SIGNALS, stream_members
from torusfabric.adapters.streams.ports import needs_commands
from torusfabric.adapters.streams.sections import tree_levels
from torusfabric.contract.interface import Interface
from torusfabric.contract.ports import Port, Protocol
from torusfabric.rtl import fabric as rtl
from torusfabric.rtl.arrays import Constants, Slice, Source
from torusfabric.rtl.front import Front, FrontFacts
from torusfabric.rtl.modules import Leaf
from torusfabric.rtl.netlist import Role, add_single_instance

__all__ = ["Element", "System"]

#: The words of a command after its first word, the mode; zeros leave all choices to the packets.
NO_CHOICES = (0, 0, 0, 0)

#: A constructor of modules.
Make = Callable[[], Leaf]


class Element(wiring.Component):
    """Base class of processing elements. A subclass has the method `elaborate`.

    Parameters
    ----------
    ports : mapping of str to Member
        The members, which the system decides.
    sizes : object
        The parameters of the element, as given to `System`.

    Members
    -------
    send, receive : stream
        The streams into and out of the fabric, as a `Fabric` has them. A payload has `data`,
        `last`, and `destination` (in `send`, if words have one) or `origin` (in `receive`). If a
        word has several flits, `keep` tells which bytes of it are valid.
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

    def __init__(self, ports: Mapping[str, Member], sizes: Any = None) -> None:
        super().__init__(ports)
        self.sizes = sizes


class Place(Leaf):
    """The module of a netlist that contains an element, with its streams as single signals."""

    def __init__(self, make: Callable[[], Element]) -> None:
        self._make = make
        super().__init__({port: flow(len(value)) for port, flow, value in self._ports(make())})

    @staticmethod
    def _ports(element: Element) -> Iterator[tuple[str, Any, Value]]:
        """Yield name, direction and value of each port, such as ``send_tdata``."""
        for path, member, value in element.signature.flatten(element):
            if path[-1] == "payload":
                for field, _ in value.shape():
                    yield f"{path[0]}_{PAYLOAD_SIGNALS[field]}", member.flow, value[field]
            else:
                yield "_t".join(map(str, path)), member.flow, Value.cast(value)

    def elaborate(self, platform: object) -> Module:
        """Connect the element to the signals."""
        m = Module()
        m.submodules.element = element = self._make()
        for port, flow, value in self._ports(element):
            if flow is In:
                m.d.comb += value.eq(self.input_value(port))
            else:
                # Why a register: a path from a memory to the host would be the critical path.
                domain = "sync" if port == "read_data" else "comb"
                m.d[domain] += getattr(self, port).eq(value)
        return m


class Conductor(Leaf):
    """The module that commands the runs of a job, and counts its cycles.

    Parameters
    ----------
    modes : sequence of int
        The mode of each run, in their order; empty if runs need no commands.
    nodes : int
        Number of elements.
    """

    def __init__(self, modes: Sequence[int], nodes: int) -> None:
        self._modes = [*modes]
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
            modes, runs = self._modes, len(self._modes)
            period = next(k for k in range(1, runs + 1) if modes[:k] * (runs // k) == modes)
            words = [word for mode in modes[:period] for word in (mode, *NO_CHOICES)]
            ends, count = [0] * len(NO_CHOICES) + [1], runs * (len(NO_CHOICES) + 1)
            left, at = Signal(range(count + 1)), Signal(range(len(words)))
            m.d.comb += [self.s_axis_cmd_tvalid.eq(left != 0), self.m_axis_status_tready.eq(1),
                         self.s_axis_cmd_tdata.eq(Array(words)[at]),
                         self.s_axis_cmd_tlast.eq(Array(ends * period)[at])]  # fmt: skip
            with m.If(start):
                m.d.sync += [left.eq(count), at.eq(0)]
            with m.Elif((left != 0) & self.input_value("s_axis_cmd_tready")):
                m.d.sync += [left.eq(left - 1), at.eq(Mux(at == len(words) - 1, 0, at + 1))]
        return m


class SystemFront(Front):
    """A fabric with streams, an element at each node, and a conductor.

    Parameters
    ----------
    front : StreamFront
        The fabric with streams.
    place, conductor : function of () -> Leaf
        Constructors of the module with an element, and of the conductor.
    """

    top = "system"

    def __init__(self, front: StreamFront, place: Make, conductor: Make) -> None:
        super().__init__(front.core, front.layouts)
        self._front, self._place, self._conductor = front, place, conductor

    def add_hardware(self) -> FrontFacts:
        """Add the fabric, then connect its streams to elements, and its commands to a conductor."""
        net, built = self.core.build, self._front.add_hardware()
        outer = {name: f"fabric_{name}" for name in ("busy", "done", "cycles", "error")}
        _, outputs = net.turn_ports_into_nets(outer, nodes=True)
        net.add_input("begin_job")
        nodes, ports = np.arange(net.nodes), self._place().signature.members
        for node in nodes.tolist():
            for name in ("address", "write", "write_data"):
                net.add_input(f"element_{name}", ports[name].shape, node=node)
            net.add_output("element_read_data", ports["read_data"].shape, node=node)

        def net_of(port: str) -> str:
            name = port.replace("send_", "s_axis_{}_").replace("receive_", "m_axis_{}_")
            return name if name != port else f"element_{port}_{{}}"

        inputs: dict[str, Source] = {
            name: Slice(net_of(name), nodes, 0, port.shape)
            for name, port in ports.items() if port.flow is In
        }  # fmt: skip
        inputs |= {"node": Constants(nodes, ports["node"].shape),
                   "start": Slice("begin_job", None, 0, 1)}  # fmt: skip
        net.add_module("element", self._place, role=Role.OTHER)
        net.add_array(
            "element_at_{}", "element", nodes,
            inputs={name: (source,) for name, source in inputs.items()},
            outputs={name: (net_of(name), port.shape)
                     for name, port in ports.items() if port.flow is Out},
        )  # fmt: skip
        done = tuple(part for k in nodes for part in net.low_bits(f"element_done_{k}", 1))
        add_single_instance(net, "conductor", Role.OTHER, self._conductor, {"done": done})
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
    sizes : object
        The parameters of the elements, if they have any.
    width, beat : int
        Bits of a flit, and flits of a word of the streams.
    memory : (int, int)
        Bits of an address and of a word of the memory ports of the elements.
    modes : sequence of int
        The mode of each run of a job, in their order; by default one run of each mode.

    Attributes
    ----------
    begin_cycles : int
        Cycles from the last word that an element sends to the first cycle of the run.
    arrive_cycles : int
        Cycles from the cycle after a run to that in which its first word arrives.
    """

    def __init__(
        self, program: tf.Program, element: type[Element], sizes: Any = None, *, width: int,
        memory: tuple[int, int], beat: int = 1, modes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        runs = tuple(modes or range(len(program.modes))) if needs_commands(program) else ()
        node, (address, data) = program.topology.nodes, memory
        streams = stream_members(program, width, beat)["node"].signature.flip().members
        ports = {**streams, "node": In((node - 1).bit_length()), "start": In(1),
                 "done": Out(1, init=1), "address": In(address), "write": In(1),
                 "write_data": In(data), "read_data": Out(data)}  # fmt: skip
        super().__init__(SystemFront(
            StreamFront(program, width, beat), partial(Place, partial(element, ports, sizes)),
            partial(Conductor, runs, node),
        ))  # fmt: skip
        self.begin_cycles = 3 + tree_levels(node)
        self.arrive_cycles = self.front.core.memory_port.read_cycles - 1
