"""The manifest: what a user of the Verilog has to know, as plain data."""

from typing import Any, NamedTuple

from ..rtl.fabric import Fabric
from .bus_ports import BUS_MEANINGS
from .interface import interface

__all__ = ["MANIFEST_VERSION", "TOP", "manifest"]

#: The name of the top module, after the prefix.
TOP = "fabric"

#: Counted up when a key changes its meaning or goes.
MANIFEST_VERSION = 1


class PortMeaning(NamedTuple):
    """What a port is for.

    Parameters
    ----------
    role : str
        ``clock``, ``reset``, ``control``, ``status``, ``write``, ``read``, ``data``, ``bus`` or
        ``interrupt``.
    meaning : str
    """

    role: str
    meaning: str


#: The ports of all tops by name; those of single nodes without the number of the node.
MEANINGS = {
    "clk": PortMeaning("clock", "all registers change with its rising edge"),
    "rst": PortMeaning("reset", "synchronous, active high"),
    "start": PortMeaning("control", "a pulse of one cycle starts a run, unless one is under way"),
    "length": PortMeaning("control", "flits of the messages of the run, sampled at start"),
    "root": PortMeaning("control", "the root of the run, sampled at start"),
    "operation": PortMeaning(
        "control", "the operator of the run, by its number in the mode, sampled at start"
    ),
    "busy": PortMeaning("status", "high from the edge after start until done"),
    "done": PortMeaning("status", "high from the end of a run until the next start"),
    "cycles": PortMeaning("status", "clock edges from the start pulse to done"),
    "error": PortMeaning(
        "status",
        "why the last start was not carried out: 2 root, 3 length, 4 operation, 5 busy; "
        "0 if it was",
    ),
    "round": PortMeaning("status", "the row of the program that is under way"),
    "host_we": PortMeaning("write", "writes host_wdata at host_addr of host_node"),
    "host_node": PortMeaning("write", "the node that is written or read"),
    "host_addr": PortMeaning("write", "the address in the memory of the node"),
    "host_wdata": PortMeaning("write", "the word to write"),
    "host_rdata": PortMeaning("read", "the word at an address, read_latency edges after it"),
    "write_bank": PortMeaning("write", "the send memory to write"),
    "write_address": PortMeaning("write", "the address in the bank to write"),
    "write_data": PortMeaning("write", "the word to write"),
    "write_enable": PortMeaning("write", "writes write_data"),
    "read_bank": PortMeaning("read", "the bank to read, a cycle after read_address"),
    "read_address": PortMeaning("read", "the address in the bank to read"),
    "read_data": PortMeaning("read", "the word read, two cycles after read_address"),
    "inject": PortMeaning("data", "flit tx_address of each chunk, a cycle after tx_address"),
    "receive": PortMeaning("data", "the word at each in-port, while rx_enable"),
    "tx_address": PortMeaning("status", "the number of the flit to inject"),
    "rx_address": PortMeaning("status", "counts flit * steps + step - 1 of what arrives"),
    "rx_enable": PortMeaning("status", "high while something arrives"),
    "irq": PortMeaning("interrupt", "high while an interrupt is pending that is enabled"),
    **{name: PortMeaning("bus", meaning) for name, meaning in BUS_MEANINGS.items()},
}


def manifest(fabric: Fabric, *, command: str, files: list[str]) -> dict[str, Any]:
    """What a user of the Verilog has to know, as plain data.

    Parameters
    ----------
    fabric : Fabric
    command : str
        The command that makes the files.
    files : list of str
        The files beside the manifest.
    """
    program = fabric.program
    schedule = program.schedule
    return {
        "manifest_version": MANIFEST_VERSION,
        "top": fabric.prefix + TOP,
        "prefix": fabric.prefix,
        "interface": (fabric.bus or fabric.top).value,
        "files": files,
        "ports": _ports(fabric),
        "nodes": fabric.nodes,
        "width": fabric.width,
        "max_flits" if program.any_length else "flits": fabric.flits,
        **interface(fabric),
        **({} if program.any_length else {"predicted_cycles": fabric.predicted_cycles}),
        "modes": [_mode(fabric)],
        "topology": schedule.topology.to_json(),
        "collective": schedule.collective.to_json() | _chosen_root(fabric),
        **({"operator": str(program.operators[0])} if len(program.operators) == 1 else {}),
        "algorithm": schedule.algorithm,
        "chunks": schedule.chunks,
        "rounds": schedule.round_count,
        "router_classes": len(fabric.router_classes),
        "command": command,
        "schedule_digest": schedule.digest,
    }


def _ports(fabric: Fabric) -> dict[str, dict[str, Any]]:
    """Every port of the top: how wide it is, and what it is for."""
    netlist = fabric.netlist
    sides = {"input": {"clk": 1, "rst": 1} | netlist.inputs, "output": netlist.outputs}
    ports = {}
    for direction, nets in sides.items():
        for name, width in nets.items():
            shared, node = netlist.node_ports.get(name, (name, None))
            known = MEANINGS[shared]
            ports[name] = {
                "direction": direction,
                "width": width,
                "role": known.role,
                "node": node,
                "clock": None if name == "clk" else "clk",
                "meaning": known.meaning,
            }
    return ports


def _chosen_root(fabric: Fabric) -> dict[str, str]:
    """The root of a collective, where every run has one of its own."""
    return {"root": "any"} if "root" in fabric.netlist.inputs else {}


def _mode(fabric: Fabric) -> dict[str, Any]:
    """The one mode of a fabric of one collective."""
    program = fabric.program
    schedule = program.schedule
    collective = schedule.collective
    axes = range(schedule.topology.dimensions) if collective.axes is None else collective.axes
    return {
        "mode": 0,
        "collective": collective.kind,
        "axes": list(axes),
        "root": collective.root if collective.rooted else None,
        **_chosen_root(fabric),
        "algorithm": schedule.algorithm,
        "operators": [operator.notation for operator in program.operators],
        "chunks": schedule.chunks,
        "cycles": _cycles(fabric),
    }


def _cycles(fabric: Fabric) -> list[dict[str, int]]:
    """The cycles of a run with n flits a chunk: constant + per_flit * n, each from some n on."""
    program = fabric.program
    # What a fixed length makes of a schedule holds for it only.
    pieces = program.timing.pieces(1 if program.any_length else program.block_flits)
    return [
        {"from": piece.first, "constant": piece.constant, "per_flit": piece.per_flit}
        for piece in pieces
    ]
