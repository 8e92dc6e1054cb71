"""The manifest: what a user of the Verilog has to know, as plain data."""

from typing import Any, NamedTuple

from ..program import Mode
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
    "run": PortMeaning("control", "as long as it is high, another period follows"),
    "mode": PortMeaning("control", "the collective of the run, by its number, sampled at start"),
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
        "why the last start was not carried out: 1 mode, 2 root, 3 length, 4 operation, 5 busy; "
        "0 if it was",
    ),
    "round": PortMeaning("status", "the row of the program that is under way"),
    "period": PortMeaning(
        "status", "periods that are complete: host_rdata shows a word of the last of them"
    ),
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


#: What ports mean in a fabric that begins again by itself.
PERIODIC_MEANINGS = {
    "busy": PortMeaning("status", "high from the edge that takes run until done"),
    "done": PortMeaning("status", "high from the end of the last period until run is taken again"),
    "cycles": PortMeaning("status", "clock edges since the one that took run, until done"),
    "host_we": PortMeaning(
        "write",
        "writes host_wdata at host_addr of host_node; at any address from recv_base on it commits "
        "what the node is to send next",
    ),
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
        "modes": [_mode(fabric, number) for number in range(len(program.modes))],
        "topology": program.topology.to_json(),
        **({"operator": str(program.operators[0])} if len(program.operators) == 1 else {}),
        **_schedules(fabric),
        "router_classes": len(fabric.router_classes),
        "command": command,
    }


def _schedules(fabric: Fabric) -> dict[str, Any]:
    """What is carried out: of several collectives, lists in the order of the modes."""
    each = [
        {
            "collective": mode.schedule.collective.to_json() | _chosen_root(mode),
            "algorithm": mode.schedule.algorithm,
            "chunks": mode.schedule.chunks,
            "rounds": mode.schedule.round_count,
            "schedule_digest": mode.schedule.digest,
        }
        for mode in fabric.program.modes
    ]
    if len(each) == 1:
        return each[0]
    return {name: [facts[name] for facts in each] for name in each[0]}


def _ports(fabric: Fabric) -> dict[str, dict[str, Any]]:
    """Every port of the top: how wide it is, and what it is for."""
    netlist = fabric.netlist
    meanings = MEANINGS | (PERIODIC_MEANINGS if fabric.periods else {})
    sides = {"input": {"clk": 1, "rst": 1} | netlist.inputs, "output": netlist.outputs}
    ports = {}
    for direction, nets in sides.items():
        for name, width in nets.items():
            shared, node = netlist.node_ports.get(name, (name, None))
            known = meanings[shared]
            ports[name] = {
                "direction": direction,
                "width": width,
                "role": known.role,
                "node": node,
                "clock": None if name == "clk" else "clk",
                "meaning": known.meaning,
            }
    return ports


def _chosen_root(mode: Mode) -> dict[str, str]:
    """The root of a collective, where every run has one of its own."""
    return {"root": "any"} if mode.any_root else {}


def _mode(fabric: Fabric, number: int) -> dict[str, Any]:
    """What a run of a mode does, and how long it takes."""
    mode, layout = fabric.program.modes[number], fabric.layouts[number]
    schedule = mode.schedule
    collective = schedule.collective
    axes = range(schedule.topology.dimensions) if collective.axes is None else collective.axes
    return {
        "mode": number,
        "collective": collective.kind,
        "axes": list(axes),
        "root": collective.root if collective.rooted else None,
        **_chosen_root(mode),
        "algorithm": schedule.algorithm,
        "operators": [operator.notation for operator in mode.operators],
        "chunks": schedule.chunks,
        "send_words": layout.send_words,
        "recv_words": layout.recv_words,
        "cycles": _cycles(fabric, mode),
    }


def _cycles(fabric: Fabric, mode: Mode) -> list[dict[str, int]]:
    """The cycles of a run with n flits a chunk: constant + per_flit * n, each from some n on."""
    if fabric.periods:
        # A single period.
        return [{"from": mode.loop.flits, "constant": fabric.periods.first, "per_flit": 0}]
    # What a fixed length makes of a schedule holds for it only.
    pieces = mode.timing.pieces(1 if mode.any_length else mode.loop.flits)
    return [
        {"from": piece.first, "constant": piece.constant, "per_flit": piece.per_flit}
        for piece in pieces
    ]
