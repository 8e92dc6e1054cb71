"""The ports of a fabric whose nodes have streams: names, widths, and what each is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...schedule.model import Choice
from ..run_choices import ERROR_BITS
from .packets import number_bits

if TYPE_CHECKING:
    from ...program import Program

__all__ = [
    "COMMAND",
    "COMMAND_BITS",
    "LOAD",
    "STATUS",
    "Clocks",
    "StreamPort",
    "needs_commands",
    "stream_ports",
]

#: Bits of a beat of the command stream and of the status stream.
COMMAND_BITS = 32

#: The beats of a command, and of its status.
COMMAND = ("mode", "length", "root", "operation", "tag")
STATUS = ("tag", "error", "cycles")

#: In place of a mode: behind the command are the words of an image, which is to be loaded.
LOAD = (1 << COMMAND_BITS) - 1

#: The protocols that ports follow.
AXI_STREAM, LEVEL, CLOCK = "AXI4-Stream", "level", "clock"


class Clocks(Choice):
    """The clocks of the streams of nodes."""

    #: The one of the fabric.
    ONE = "one"
    #: Each node has one of its own.
    PER_NODE = "per-node"


class StreamPort(NamedTuple):
    """A port of a fabric whose nodes have streams.

    Parameters
    ----------
    name : str
        Of the port; in that of a node its number stands before the name of the signal.
    direction : str
        ``in`` or ``out``, seen from the fabric.
    node : int or None
        Whose it is; None for what there is once.
    protocol : str
        ``AXI4-Stream``, ``level`` or ``clock``.
    clock : str or None
        In the domain of which clock it is; None for a clock.
    """

    name: str
    direction: str
    width: int
    node: int | None
    protocol: str
    meaning: str
    clock: str | None = "clk"


def needs_commands(program: Program) -> bool:
    """Whether anything but the length of messages is chosen for each run.

    Then there are a stream of commands and one of statuses; otherwise a run starts as soon as every
    message is there.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("3x3", "broadcast")
    >>> needs_commands(tf.compile(schedule, max_flits=8))
    False
    >>> needs_commands(tf.compile(schedule, max_flits=8, root="any"))
    True
    """
    several = program.several or program.barrier or program.loaded
    return several or program.any_root or len(program.operators) > 1


def stream_ports(
    program: Program, width: int, clocks: Clocks | str = Clocks.ONE, *, beat: int = 1
) -> list[StreamPort]:
    """The ports of a fabric whose nodes have streams, clock and reset aside.

    Parameters
    ----------
    width : int
        Bits of a flit.
    clocks : Clocks
        Of the streams of nodes.
    beat : int
        Flits of a word of these streams.

    Returns
    -------
    list of StreamPort
        Those of the nodes, one after the other; of commands; and of what the fabric does.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "alltoall"), flits=4)
    >>> ports = stream_ports(program, width=12)
    >>> [(port.name, port.width) for port in ports if port.node == 8][:5]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('s_axis_8_tdata', 16), ('s_axis_8_tvalid', 1), ('s_axis_8_tready', 1), ('s_axis_8_tlast', 1),
     ('s_axis_8_tdest', 4)]
    >>> [port.name for port in ports if port.node is None]
    ['busy', 'done', 'cycles', 'error']
    """
    nodes = program.topology.nodes
    personal = program.loaded or any(form.schedule.collective.personal for form in program.forms)
    own_clocks = Clocks(clocks) is Clocks.PER_NODE
    ports: list[StreamPort] = []
    for node in range(nodes):
        ports += _of_node(
            node,
            width * beat,
            number_bits(program),
            personal=personal,
            own_clock=own_clocks,
            keeps=beat > 1,
        )
    if needs_commands(program):
        ports += _stream("s_axis_cmd", "in", COMMAND_BITS, f"a command: {', '.join(COMMAND)}")
        ports += _stream("m_axis_status", "out", COMMAND_BITS, f"a status: {', '.join(STATUS)}")
    return ports + [
        StreamPort(name, "out", bits, None, LEVEL, meaning)
        for name, bits, meaning in (
            ("busy", 1, "a run is under way"),
            ("done", 1, "high from the end of a run to the next start"),
            ("cycles", 32, "cycles of the run under way, or of the last, from its start"),
            ("error", ERROR_BITS, "why the last run was not carried out, or 0"),
        )
    ]


def _of_node(
    node: int, width: int, number_bits: int, *, personal: bool, own_clock: bool, keeps: bool
) -> list[StreamPort]:
    """The ports of a node: its clock, if it has one, what it sends, and what it receives."""
    clock, of_node = f"clk_{node}", f"of the streams of node {node}"
    of_reset = f"reset {of_node}, together with that of the fabric"
    clocks = [
        StreamPort(clock, "in", 1, node, CLOCK, f"clock {of_node}", None),
        StreamPort(f"rst_{node}", "in", 1, node, LEVEL, of_reset, clock),
    ]
    what = "a packet for each destination" if personal else "its message"
    sent = _stream(f"s_axis_{node}", "in", width, f"what node {node} sends, {what}", keeps=keeps)
    if personal:
        meaning = "the destination of the packet, where the collective has several"
        sent.append(_signal(f"s_axis_{node}_tdest", "in", number_bits, meaning))
    meaning = f"what node {node} receives"
    received = _stream(f"m_axis_{node}", "out", width, meaning, keeps=keeps)
    meaning = "the origin of the packet, ascending; 0 where words are combined"
    received.append(_signal(f"m_axis_{node}_tid", "out", number_bits, meaning))
    domain = clock if own_clock else "clk"
    streams = [port._replace(node=node, clock=domain) for port in (*sent, *received)]
    return clocks * own_clock + streams


def _stream(
    prefix: str, direction: str, width: int, meaning: str, *, keeps: bool = False
) -> list[StreamPort]:
    """The data and the handshake of a stream; data are whole bytes."""
    back = "out" if direction == "in" else "in"
    kept = _signal(
        f"{prefix}_tkeep", direction, width // 8, "which bytes of the last word are full"
    )
    return [
        _signal(f"{prefix}_tdata", direction, 8 * -(-width // 8), f"a word of {meaning}"),
        _signal(f"{prefix}_tvalid", direction, 1, "a word is there"),
        _signal(f"{prefix}_tready", back, 1, "it is taken with this edge, if it is there"),
        _signal(f"{prefix}_tlast", direction, 1, "it is the last of its packet"),
        *[kept] * keeps,
    ]


def _signal(name: str, direction: str, width: int, meaning: str) -> StreamPort:
    """A signal of a stream."""
    return StreamPort(name, direction, width, None, AXI_STREAM, meaning)
