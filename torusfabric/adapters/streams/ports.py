"""The ports of a fabric with streams: names, widths and purposes.

In this module a *port* is a signal of the top Verilog module. `StreamTop` adds these ports to a
netlist. The manifest, the test bench and the Amaranth streams of a `Fabric` are derived from them.
Each port has a string that states its purpose, for the manifest and generated pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.lib.wiring import In, Member, Out

from ...contract.ports import Port, Protocol
from ...rtl.run_choices import ERROR_BITS
from .options import Clocks
from .sections import stream_id_bits, stream_nodes

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["COMMAND_WORDS", "COMMAND_BITS", "COMMAND_NETS", "LOAD_MODE", "STATUS_WORDS",
           "command_members", "is_fabric_input", "needs_commands", "stream_ports",
           "stream_signals"]  # fmt: skip

#: Bits of a beat of the command stream and of the status stream.
COMMAND_BITS = 32

#: The words of a command, and of its status, in their order.
COMMAND_WORDS = ("mode", "length", "root", "operation", "tag")
STATUS_WORDS = ("tag", "error", "cycles")

#: Net of each member of `Commands` and `CommandPort` that belongs to one of these streams.
COMMAND_NETS = {
    before + name: net + name
    for before, net in (("", "s_axis_cmd_"), ("status_", "m_axis_status_"))
    for name in ("tdata", "tvalid", "tready", "tlast")
}

#: A number in place of the mode: the words of an image to load follow the command.
LOAD_MODE = (1 << COMMAND_BITS) - 1


def needs_commands(program: Program) -> bool:
    """Return True if runs choose more than the length of messages: mode, root or operator.

    The fabric then has a command stream and a status stream. Otherwise a run starts when every node
    has its message.

    Examples
    --------
    If runs choose only their length, there are no commands; if they choose the root, there are.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("3x3", "broadcast")
    >>> needs_commands(tf.compile(schedule, max_flits=8))
    False
    >>> needs_commands(tf.compile(schedule, max_flits=8, root="any"))
    True
    """
    several = program.several or program.barrier or program.writable
    return several or program.any_root or len(program.operators) > 1


def stream_signals(
    data: int = 0, *, keep: int = 0, dest: int = 0, origin: int = 0
) -> dict[str, Member]:
    """Return the signals of an AXI4-Stream as Amaranth members, by name.

    Directions are those at the receiver of the stream.

    Parameters
    ----------
    data, keep, dest, origin : int
        Bits of `tdata`, `tkeep`, `tdest` and `tid`; a signal of 0 bits is left out by `Leaf`.
    """
    return {
        "tdata": In(data), "tvalid": In(1), "tready": Out(1), "tlast": In(1), "tkeep": In(keep),
        "tdest": In(dest), "tid": In(origin),
    }  # fmt: skip


def command_members() -> dict[str, Member]:
    """Return the signals of the command and status streams as Amaranth members, by name.

    Directions are those at the module `Commands`, which receives commands and sends statuses.
    """
    command = stream_signals(COMMAND_BITS)
    return command | {f"status_{name}": each.flip() for name, each in command.items()}


def stream_ports(
    program: Program, width: int, clocks: Clocks | str = Clocks.ONE, *, beat: int = 1
) -> dict[str, Port]:
    """Return the ports of a fabric with streams, keyed by name, without `clk` and `rst`.

    A port is here one signal. Its name has stream, node and signal: ``s_axis_8_tdata``.

    Parameters
    ----------
    program : Program
        The program, which decides whether there are commands, `tdest`, and the bits of `tid`.
    width : int
        Bits of a flit.
    clocks : Clocks
        Clocks of the node streams.
    beat : int
        Flits of a word of the node streams.

    Examples
    --------
    In an all-to-all packets name their destination (`tdest`). Words of 12 bits are padded to two
    bytes. Ports without a node are those for the state of runs.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "alltoall"), flits=4)
    >>> ports = stream_ports(program, width=12)
    >>> [(name, port.width) for name, port in ports.items() if port.node == 8][:5]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('s_axis_8_tdata', 16), ('s_axis_8_tvalid', 1), ('s_axis_8_tready', 1), ('s_axis_8_tlast', 1),
     ('s_axis_8_tdest', 4)]
    >>> [name for name, port in ports.items() if port.node is None]
    ['busy', 'done', 'cycles', 'error']
    """
    personal = program.writable or any(form.schedule.collective.personal for form in program.forms)
    apart, number, bits = Clocks(clocks) is Clocks.PER_NODE, stream_id_bits(program), width * beat
    what = "a packet for each destination" if personal else "its message"
    ports: dict[str, Port] = {}
    for node in stream_nodes(program.topology).tolist():
        clock, of_node = f"clk_{node}", f"of the streams of node {node}"
        of_reset = f"reset {of_node}, together with that of the fabric"
        if apart:
            own = {clock: Port("clock", Protocol.CLOCK, f"clock {of_node}", width=1),
                   f"rst_{node}": Port("reset", Protocol.LEVEL, of_reset, clock, 1)}  # fmt: skip
            ports |= {name: port._replace(node=node) for name, port in own.items()}
        streams = {
            **_axi_stream_ports(
                f"s_axis_{node}",
                bits,
                f"the message that node {node} sends, {what}",
                keeps=beat > 1,
                tdest=number * personal,
            ),
            **_axi_stream_ports(
                f"m_axis_{node}",
                bits,
                f"the packets that node {node} receives",
                keeps=beat > 1,
                tid=number,
            ),
        }
        whose: dict[str, Any] = {"node": node, "clock": clock if apart else "clk"}
        ports |= {name: port._replace(**whose) for name, port in streams.items()}
    if needs_commands(program):
        ports |= _axi_stream_ports(
            "s_axis_cmd", COMMAND_BITS, f"a command: {', '.join(COMMAND_WORDS)}"
        )
        ports |= _axi_stream_ports(
            "m_axis_status", COMMAND_BITS, f"a status: {', '.join(STATUS_WORDS)}"
        )
    return ports | {
        name: Port("status", Protocol.LEVEL, meaning, width=bits, output=True)
        for name, bits, meaning in (
            ("busy", 1, "high while a run is under way"),
            ("done", 1, "high from the end of a run to the next start"),
            ("cycles", 32, "cycles of the run under way, or of the last, from its start"),
            (
                "error",
                ERROR_BITS,
                "the reason why the last run was refused (an error number), or 0",
            ),
        )
    }


def _axi_stream_ports(
    prefix: str, width: int, meaning: str, *, keeps: bool = False, tdest: int = 0, tid: int = 0
) -> dict[str, Port]:
    """Return the ports of one stream, keyed by name: `prefix` and a signal of AXI4-Stream.

    `width` are the bits of a word; `tdata` is padded to whole bytes. `meaning` is the text for the
    purpose of the ports, `keeps` is True for a stream with `tkeep`, and `tdest` and `tid` are the
    bits of these signals.
    """
    signals = {
        "tdata": (8 * -(-width // 8), f"a word of {meaning}"),
        "tvalid": (1, "tdata is valid"),
        "tready": (1, "the receiver takes the word at this edge, if it is valid"),
        "tlast": (1, "the word is the last of its packet"),
        "tkeep": (width // 8 * keeps, "a bit for each byte of the last word that carries data"),
        "tdest": (tdest, "the destination of the packet, where the collective has several"),
        "tid": (tid, "the origin of the packet, ascending; 0 where words are combined"),
    }
    return {
        f"{prefix}_{name}": Port("data", Protocol.AXI_STREAM, what, width=bits,
                                 output=not is_fabric_input(prefix, name))
        for name, (bits, what) in signals.items() if bits
    }  # fmt: skip


def is_fabric_input(prefix: str, name: str) -> bool:
    """Return True if the signal `name` of a stream is an input of the fabric.

    Signals of a stream into the fabric (`prefix` begins with ``s_axis``) are inputs, except
    ``tready``. Of a stream out of the fabric, only ``tready`` is an input.
    """
    return prefix.startswith("s_axis") != (name == "tready")
