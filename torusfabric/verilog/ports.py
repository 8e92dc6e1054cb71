"""The ports of a top as data: how wide each is, and what it is for."""

from typing import Any

from ..contract.ports import Protocol, grouped_ports
from ..rtl.netlist import Netlist

__all__ = ["port_facts"]


#: The ports of all tops by name; those of single nodes without the number of the node.
MEANINGS = grouped_ports(
    {
        ("clock", Protocol.CLOCK): {"clk": "all registers change with its rising edge"},
        ("reset", Protocol.LEVEL): {"rst": "synchronous, active high"},
        ("control", Protocol.PULSE): {
            "start": "a pulse of one cycle starts a run, unless one is under way",
        },
        ("control", Protocol.SAMPLED): {
            "mode": "the collective of the run, by its number, sampled at start",
            "length": "flits of the messages of the run, sampled at start",
            "root": "the root of the run, sampled at start",
            "operation": "the operator of the run, by its number in the mode, sampled at start",
        },
        ("status", Protocol.LEVEL): {
            "busy": "high from the edge after start until done",
            "done": "high from the end of a run until the next start",
            "cycles": "clock edges from the begin of a run to done",
            "error": "why the last start was not carried out: 1 mode, 2 root, 3 length, "
            "4 operation, 5 busy, 10 what was loaded is for another fabric or incomplete; 0 if it "
            "was",
            "round": "the row of the program that is under way",
        },
    }
)


def port_facts(netlist: Netlist) -> dict[str, dict[str, Any]]:
    """Return the width and the purpose of every port of a top.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> netlist = tf.Fabric(program, width=8, top="core").netlist
    >>> port_facts(netlist)["receive_1"]["role"]
    'data'
    """
    meanings = {**MEANINGS, **netlist.declared}
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
                "protocol": str(known.protocol),
                "node": node,
                "clock": None if known.protocol == Protocol.CLOCK else known.clock,
                "meaning": known.meaning,
            }
    return ports
