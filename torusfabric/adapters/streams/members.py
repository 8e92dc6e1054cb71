"""Node streams as Amaranth streams (``amaranth.lib.stream``), for `wiring.connect`.

`StreamInterface` uses this module. The netlist (the generated circuit) has the signals of
AXI4-Stream, such as ``s_axis_8_tdata``. A `Fabric`, as an Amaranth component, has *members* in
place of them: ``node[8].send`` is an Amaranth stream, whose `payload` has a field for the data of a
word and for each other signal, such as `last` for ``tlast``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Member, Out

from .ports import COMMAND_BITS, is_fabric_input, needs_commands, stream_ports
from .sections import stream_nodes

if TYPE_CHECKING:
    from ...program import Program
    from ...rtl.assembly import Assembly

__all__ = ["connect_streams", "stream_members"]

#: AXI4-Stream signal of each field of an Amaranth payload.
PAYLOAD_SIGNALS = {
    "data": "tdata",
    "last": "tlast",
    "keep": "tkeep",
    "destination": "tdest",
    "origin": "tid",
}


def stream_members(program: Program, width: int, beat: int = 1) -> dict[str, Member]:
    """Return the Amaranth members of a fabric that stand for the ports of its streams, by name.

    Nodes that only relay have members, too, which are not connected.

    A member is an attribute of the fabric as an Amaranth component. For example, the stream
    ``node[8].send`` stands for the ports ``s_axis_8_tdata``, ``s_axis_8_tvalid`` and so on.

    Parameters
    ----------
    program : Program
        The program, which decides the fields of payloads, and whether there are members for the
        command and status streams.
    width : int
        Bits of a flit.
    beat : int
        Flits of a word of a stream.

    Examples
    --------
    Data have 12 bits; a packet names its destination or origin, the number of one of nine nodes.

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "alltoall")), width=12, top="stream")
    >>> fabric.node[8].send.payload.shape()
    StructLayout({'data': 12, 'last': 1, 'destination': 4})
    >>> fabric.node[8].receive.payload.shape()
    StructLayout({'data': 12, 'last': 1, 'origin': 4})
    """
    ports = {name: port.width for name, port in stream_ports(program, width, beat=beat).items()}
    first = stream_nodes(program.topology)[0]
    send, receive = (
        _stream_signature(ports, f"{side}_{first}", width * beat) for side in ("s_axis", "m_axis")
    )
    node = wiring.Signature({"send": In(send), "receive": Out(receive)})
    members = {"node": Out(node).array(program.topology.nodes)}
    if needs_commands(program):
        word = _stream_signature(ports, "s_axis_cmd", COMMAND_BITS)
        members |= {"command": In(word), "status": Out(word)}
    return members


def _stream_signature(ports: Mapping[str, int], prefix: str, width: int) -> stream.Signature:
    """Return the signature of an Amaranth stream for AXI4-Stream ports that begin with `prefix`.

    Its payload has a field for each port of the stream but ``tvalid`` and ``tready``, such as
    `last` for ``tlast``. `ports` has the widths of all ports by name. The field `data` has `width`
    bits, without padding.
    """
    bits = {field: ports.get(f"{prefix}_{name}", 0) for field, name in PAYLOAD_SIGNALS.items()}
    fields = {field: size for field, size in bits.items() if size}
    return stream.Signature(StructLayout(fields | {"data": width}))


def connect_streams(m: Module, fabric: Any, assembly: Assembly) -> None:
    """Connect the Amaranth streams of a fabric to the AXI4-Stream ports of its netlist.

    Parameters
    ----------
    m : Module
        The module of the fabric.
    fabric : Fabric
        The Amaranth component with the streams as attributes.
    assembly : Assembly
        The netlist as an Amaranth component, which has the ports.
    """
    for node in stream_nodes(fabric.program.topology).tolist():
        _connect_stream(m, assembly, f"s_axis_{node}", fabric.node[node].send)
        _connect_stream(m, assembly, f"m_axis_{node}", fabric.node[node].receive)
    if hasattr(fabric, "command"):
        _connect_stream(m, assembly, "s_axis_cmd", fabric.command)
        _connect_stream(m, assembly, "m_axis_status", fabric.status)


def _connect_stream(m: Module, assembly: Assembly, prefix: str, ours: Any) -> None:
    """Connect the Amaranth stream `ours` to the ports whose names begin with `prefix`.

    Inputs of the netlist that are wider than the field of the payload are padded with zeros.
    `assembly` is the Amaranth module that contains all modules of the fabric and has these ports.
    """
    names = {PAYLOAD_SIGNALS[field]: ours.payload[field] for field, _ in ours.payload.shape()}
    names |= {"tvalid": ours.valid, "tready": ours.ready}
    for name, value in names.items():
        port, mine = getattr(assembly, f"{prefix}_{name}"), Value.cast(value)
        if is_fabric_input(prefix, name):
            m.d.comb += port.eq(Cat(mine, Const(0, len(port) - len(mine))))
        else:
            m.d.comb += mine.eq(port[: len(mine)])
