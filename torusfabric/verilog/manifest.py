"""The manifest: what a user of the Verilog has to know, as plain data."""

from typing import Any

from ..rtl.fabric import Fabric

__all__ = ["manifest"]


def manifest(fabric: Fabric, *, command: str, files: list[str]) -> dict[str, Any]:
    """What a user of the Verilog has to know, as plain data."""
    program, layout = fabric.program, fabric.layout
    schedule = program.schedule
    return {
        "top": "fabric",
        "files": files,
        "ports": {
            name: {"direction": direction, "width": width}
            for direction, nets in (
                ("input", {"clk": 1, "rst": 1} | fabric.netlist.inputs),
                ("output", fabric.netlist.outputs),
            )
            for name, width in nets.items()
        },
        "nodes": fabric.nodes,
        "width": fabric.width,
        "flits": fabric.flits,
        "send_base": layout.send_base,
        "send_words": layout.send_words,
        "recv_base": layout.recv_base,
        "recv_words": layout.recv_words,
        "read_latency": fabric.read_latency,
        "predicted_cycles": fabric.cycles,
        "topology": schedule.topology.to_json(),
        "collective": schedule.collective.to_json()
        | ({"root": "any"} if "root" in fabric.netlist.inputs else {}),
        **({"operator": str(program.operator)} if schedule.collective.reducing else {}),
        "algorithm": schedule.algorithm,
        "chunks": schedule.chunks,
        "rounds": schedule.round_count,
        "router_classes": len(program.class_sizes),
        "command": command,
        "schedule_digest": schedule.digest,
    }
