"""What the manifest says of the interface of a top: a host port, a bus, streams or memories.

The ports themselves are listed apart; here is what their words, addresses and banks mean, and in
which cycle they count. Cycle c follows edge c of the clock; the edge that takes the start pulse is
edge 0.
"""

from typing import Any

from ..program.timing import ADDRESS, LINK, SETTING
from ..rtl.fabric import Fabric, Top
from ..rtl.streams import needs_commands
from ..rtl.streams.ports import COMMAND, STATUS
from .bus import bus_facts

__all__ = ["ADDRESS_MAP", "interface"]

#: The file that says which block of a core arrives, or lies, where.
ADDRESS_MAP = "address_map.json"


def interface(fabric: Fabric) -> dict[str, Any]:
    """The keys of the manifest that depend on the top.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="one-packet"))
    >>> interface(tf.Fabric(program, top="host"))["recv_base"]
    16
    >>> interface(tf.Fabric(program, top="core"))["streams"]["receive"]
    ['+0', '-0', '+1', '-1']
    """
    if fabric.bus and fabric.register_map:
        return {"stride": fabric.flits, "bus": bus_facts(fabric.bus, fabric.register_map)}
    if fabric.top is Top.HOST:
        return _host(fabric)
    if fabric.top is Top.STREAM:
        return _axi_streams(fabric)
    return {"streams": _streams(fabric)} if fabric.streaming else {"memories": _memories(fabric)}


def _host(fabric: Fabric) -> dict[str, Any]:
    """The addresses of the host port."""
    layouts = fabric.layouts
    return {
        "stride": fabric.flits,
        "send_base": layouts[0].send_base,
        "send_words": max(layout.send_words for layout in layouts),
        "recv_base": layouts[0].recv_base,
        "recv_words": max(layout.recv_words for layout in layouts),
        "read_latency": fabric.read_latency,
    }


def _axi_streams(fabric: Fabric) -> dict[str, Any]:
    """The words of commands and statuses in their order, and the mode that is a barrier, if any."""
    if not needs_commands(fabric.program):
        return {}
    barrier = {"barrier": len(fabric.program.modes)} if fabric.program.barrier else {}
    return {"command_words": list(COMMAND), "status_words": list(STATUS), **barrier}


def _streams(fabric: Fabric) -> dict[str, Any]:
    """The words of the streams of a node, the least significant first, and their first cycles."""
    program = fabric.program
    wait = program.timing.wait
    return {
        "inject": list(range(program.schedule.chunks)),
        "receive": list(program.topology.port_names),
        "steps": program.schedule.round_count,
        "block_flits": program.block_flits,
        "part_flits": fabric.flits,
        "tx_address_cycle": wait + ADDRESS,
        "inject_cycle": wait + SETTING,
        "receive_cycle": wait + LINK,
        "address_map": ADDRESS_MAP,
    }


def _memories(fabric: Fabric) -> dict[str, Any]:
    """The blocks and banks in the memories of a node, and the cycles that a read takes."""
    program, layout = fabric.program, fabric.program.layout
    return {
        "send_parts": layout.send_parts,
        "receive_parts": layout.recv_parts,
        "part_flits": layout.part_flits(fabric.flits),
        "part_chunks": layout.part_chunks,
        "block_flits": program.block_flits,
        "write_banks": sum(memory.own for memory in program.memories),
        "read_banks": len(program.memories),
        "read_bank_delay": 0,
        "read_latency": fabric.read_latency,
        "address_map": ADDRESS_MAP,
    }
