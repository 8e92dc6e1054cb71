"""The ports of a top as data: how wide each is, and what it is for."""

from typing import Any

from ..rtl.fabric import Fabric, Top
from .bus_ports import BUS_MEANINGS
from .port_meaning import PortMeaning, Protocol
from .stream_meanings import stream_clocks, stream_meanings

__all__ = ["port_facts"]

#: The ports of all tops by name; those of single nodes without the number of the node.
MEANINGS = {
    "clk": PortMeaning("clock", Protocol.CLOCK, "all registers change with its rising edge"),
    "rst": PortMeaning("reset", Protocol.LEVEL, "synchronous, active high"),
    "start": PortMeaning(
        "control", Protocol.PULSE, "a pulse of one cycle starts a run, unless one is under way"
    ),
    "mode": PortMeaning(
        "control", Protocol.SAMPLED, "the collective of the run, by its number, sampled at start"
    ),
    "length": PortMeaning(
        "control", Protocol.SAMPLED, "flits of the messages of the run, sampled at start"
    ),
    "root": PortMeaning("control", Protocol.SAMPLED, "the root of the run, sampled at start"),
    "operation": PortMeaning(
        "control",
        Protocol.SAMPLED,
        "the operator of the run, by its number in the mode, sampled at start",
    ),
    "busy": PortMeaning("status", Protocol.LEVEL, "high from the edge after start until done"),
    "done": PortMeaning(
        "status", Protocol.LEVEL, "high from the end of a run until the next start"
    ),
    "cycles": PortMeaning("status", Protocol.LEVEL, "clock edges from the start pulse to done"),
    "error": PortMeaning(
        "status",
        Protocol.LEVEL,
        "why the last start was not carried out: 1 mode, 2 root, 3 length, 4 operation, 5 busy; "
        "0 if it was",
    ),
    "round": PortMeaning("status", Protocol.LEVEL, "the row of the program that is under way"),
    "host_we": PortMeaning("write", Protocol.MEMORY, "writes host_wdata at host_addr of host_node"),
    "host_node": PortMeaning("write", Protocol.MEMORY, "the node that is written or read"),
    "host_addr": PortMeaning("write", Protocol.MEMORY, "the address in the memory of the node"),
    "host_wdata": PortMeaning("write", Protocol.MEMORY, "the word to write"),
    "host_rdata": PortMeaning(
        "read", Protocol.MEMORY, "the word at an address, read_latency edges after it"
    ),
    "write_bank": PortMeaning("write", Protocol.MEMORY, "the send memory to write"),
    "write_address": PortMeaning("write", Protocol.MEMORY, "the address in the bank to write"),
    "write_data": PortMeaning("write", Protocol.MEMORY, "the word to write"),
    "write_enable": PortMeaning("write", Protocol.MEMORY, "writes write_data"),
    "read_bank": PortMeaning(
        "read", Protocol.MEMORY, "the bank to read, a cycle after read_address"
    ),
    "read_address": PortMeaning("read", Protocol.MEMORY, "the address in the bank to read"),
    "read_data": PortMeaning(
        "read", Protocol.MEMORY, "the word read, two cycles after read_address"
    ),
    "inject": PortMeaning(
        "data", Protocol.SCHEDULED, "flit tx_address of each chunk, a cycle after tx_address"
    ),
    "receive": PortMeaning("data", Protocol.SCHEDULED, "the word at each in-port, while rx_enable"),
    "tx_address": PortMeaning("status", Protocol.SCHEDULED, "the number of the flit to inject"),
    "rx_address": PortMeaning(
        "status", Protocol.SCHEDULED, "counts flit * steps + step - 1 of what arrives"
    ),
    "rx_enable": PortMeaning("status", Protocol.SCHEDULED, "high while something arrives"),
    "irq": PortMeaning(
        "interrupt", Protocol.LEVEL, "high while an interrupt is pending that is enabled"
    ),
    **BUS_MEANINGS,
}


def _meanings(fabric: Fabric) -> dict[str, PortMeaning]:
    """What the ports of a fabric are for, by their names."""
    if fabric.top is Top.STREAM:
        return MEANINGS | stream_meanings(fabric)
    return MEANINGS


def port_facts(fabric: Fabric) -> dict[str, dict[str, Any]]:
    """Every port of the top: how wide it is, and what it is for."""
    netlist, meanings = fabric.netlist, _meanings(fabric)
    clocks = stream_clocks(fabric) if fabric.top is Top.STREAM else {}
    sides = {"input": {"clk": 1, "rst": 1} | netlist.inputs, "output": netlist.outputs}
    ports = {}
    for direction, nets in sides.items():
        for name, width in nets.items():
            shared, node = netlist.node_ports.get(name, (name, None))
            known = meanings[name if name in meanings else shared]
            ports[name] = {
                "direction": direction,
                "width": width,
                "role": known.role,
                "protocol": known.protocol.value,
                "node": node,
                "clock": clocks.get(name, None if name == "clk" else "clk"),
                "meaning": known.meaning,
            }
    return ports
