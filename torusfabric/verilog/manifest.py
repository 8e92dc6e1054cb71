"""The manifest and all other files beside the Verilog.

`emit` adds these files to a design. ``manifest.json`` lists ports, modes, addresses and predicted
cycles as plain data, so that tools need no torusfabric to drive a fabric. Its readers are the
cocotb bench, the LiteX import and the commands that load tables.

Cycle c follows clock edge c. Edge 0 is the edge that takes the start pulse.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..collective import NO_NODE, OPERATORS, SIGNED, Operator
from ..contract.interface import Bench
from ..contract.ports import Protocol, grouped_ports
from ..program import CyclePiece, Mode
from ..program.mode import Range
from ..rtl.fabric import Fabric
from ..rtl.netlist import Netlist
from ..topology import Faulty, Topology
from .design import MANIFEST, TEXT

__all__ = ["BENCH", "TOP", "as_json", "bench_files", "files_beside", "interface",
           "manifest", "port_facts"]  # fmt: skip

#: Name of the top module, after the prefix.
TOP = "fabric"

#: Version of the manifest; it increases when a key changes its meaning or is removed.
MANIFEST_VERSION = 1


#: Ports that the core and the host have, by name; the netlist declares those of other adapters.
MEANINGS = grouped_ports(
    {
        ("clock", Protocol.CLOCK): {"clk": "the clock; all registers change at its rising edge"},
        ("reset", Protocol.LEVEL): {"rst": "synchronous reset, active high"},
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
            "cycles": "clock edges from the beginning of a run to done",
            "error": "the reason why the last start was refused: 1 mode, 2 root, 3 length, "
            "4 operation, 5 busy, 10 the loaded image is incomplete or for another fabric; 0 if it "
            "was accepted",
            "round": "the number of the program's row that is under way",
        },
    }
)


def port_facts(netlist: Netlist) -> dict[str, dict[str, Any]]:
    """Return direction, width, role, protocol, node, clock and meaning of every port of a top.

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


def manifest(
    fabric: Fabric, *, command: str, files: list[str], modules: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the manifest: all that a user of the Verilog has to know, as plain data.

    Parameters
    ----------
    command : str
        Command line that repeats the export.
    files : list of str
        Names of the other files.
    modules : sequence of str
        Names of all modules in the text.
    """
    program = fabric.program
    return {
        "manifest_version": MANIFEST_VERSION,
        "top": fabric.prefix + TOP,
        "prefix": fabric.prefix,
        "interface": fabric.front.name,
        "files": files,
        "modules": list(modules),
        "ports": port_facts(fabric.netlist),
        "nodes": fabric.nodes,
        "width": fabric.width,
        "max_flits" if program.any_length else "flits": fabric.flits,
        **interface(fabric),
        **({} if program.any_length else {"predicted_cycles": fabric.predicted_cycles}),
        "modes": [_mode(fabric, number) for number in range(len(program.modes))],
        "topology": program.topology.to_entry(),
        **_renumbered(program.topology),
        **({"operator": str(program.operators[0])} if len(program.operators) == 1 else {}),
        **_functions(program.operators),
        **_schedules(fabric),
        "router_classes": len(fabric.router_classes),
        "command": command,
    }


def _renumbered(topology: Topology) -> dict[str, list[int]]:
    """Return the number of each node in the topology without faults, if some nodes are broken."""
    if not isinstance(topology, Faulty) or not topology.broken_nodes:
        return {}
    return {"numbers_in_whole": topology.kept.tolist()}


def _functions(operators: Sequence[Operator]) -> dict[str, dict[str, str]]:
    """Return where a bench imports the functions of operators from other packages.

    Operators that are not associative are left out. Why: the bench computes expected words by the
    definition of the collective, which leaves the order of operands open.
    """
    found = {
        operator.name: f"{operator.function.__module__}:{operator.function.__qualname__}"
        for operator in operators
        if operator.name not in (*OPERATORS, *SIGNED)
        and operator.associative
        and operator.function.__module__ != "__main__"
        # Without an importable name, as for a partial function, the operator is left out.
        and getattr(operator.function, "__qualname__", "").isidentifier()
    }
    return {"operator_functions": found} if found else {}


def _schedules(fabric: Fabric) -> dict[str, Any]:
    """Return the collective, algorithm and schedule; with several modes, a list for each key."""
    each = [
        {
            "collective": mode.schedule.collective.to_json() | _chosen_root(mode),
            "algorithm": mode.algorithms,
            "chunks": mode.chunks,
            "rounds": mode.schedule.round_count,
            "schedule_digest": mode.schedule.digest,
        }
        for mode in fabric.program.modes
    ]
    if len(each) == 1:
        return each[0]
    return {name: [facts[name] for facts in each] for name in each[0]}


def _chosen_root(mode: Mode) -> dict[str, str]:
    """Return the key of a mode whose runs choose the root."""
    return {"root": "any"} if mode.any_root else {}


def _offsets(mode: Mode) -> dict[str, Any]:
    """Return the offsets of an exchange or halo, and the origin of each received part.

    ``origins[p][k]`` is the position from which position p receives by offset k, or None.
    """
    blocks, collective = mode.schedule.blocks, mode.schedule.collective
    if not collective.local:
        return {}
    origins = blocks.origin_of(np.arange(blocks.nodes)[:, None], np.arange(blocks.parts)[None, :])
    names = collective.offsets or blocks.groups.torus.port_names
    listed = [[None if k == NO_NODE else k for k in each] for each in origins.tolist()]
    return {"offsets": list(names), "origins": listed}


def _mode(fabric: Fabric, number: int) -> dict[str, Any]:
    """Return the entry of a mode: collective, algorithm, memory words, cycles, and its forms."""
    mode, layout = fabric.program.modes[number], fabric.layouts[number]
    collective, own = mode.schedule.collective, mode.schedule.topology
    axes = range(own.dimensions) if collective.axes is None else collective.axes
    return {
        "mode": number,
        "collective": collective.kind,
        "axes": list(axes),
        **({"without": list(collective.without)} if collective.without else {}),
        # A mode may leave out links that other modes use.
        **({} if own == fabric.program.topology else {"topology": own.to_entry()}),
        "root": collective.root if collective.rooted else None,
        **_chosen_root(mode),
        **_offsets(mode),
        "algorithm": mode.algorithms,
        "operators": [operator.name for operator in mode.operators],
        "chunks": mode.chunks,
        "send_words": layout.send_words,
        "recv_words": layout.recv_words,
        "cycles": _cycles(mode.pieces(fabric.flits)),
        **({"forms": [_form(mode, each) for each in mode.ranges]} if mode.several else {}),
    }


def _form(mode: Mode, served: Range) -> dict[str, Any]:
    """Return the entry of a form: the shortest length that it serves, its schedule and cycles."""
    start, form = served.start, mode.at(served.form)
    schedule = form.schedule
    return {
        "from": start,
        "algorithm": schedule.algorithm,
        "chunks": form.grain,
        "rounds": schedule.round_count,
        "schedule_digest": schedule.digest,
        "cycles": _cycles(form.pieces(-(-start // form.grain))),
    }


def _cycles(pieces: Iterable[CyclePiece]) -> list[dict[str, int]]:
    """Return the cycles of a run with n flits a chunk: constant + per_flit * n, for n >= from."""
    return [
        {"from": piece.first, "constant": piece.constant, "per_flit": piece.per_flit}
        for piece in pieces
    ]


def interface(fabric: Fabric) -> dict[str, Any]:
    """Return the keys of the manifest that depend on the top.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="one-packet"))
    >>> interface(tf.Fabric(program, top="host"))["recv_base"]
    16
    >>> interface(tf.Fabric(program, top="core"))["streams"]["receive"]
    ['+0', '-0', '+1', '-1']
    """
    return {**fabric.interface.facts(), **({"beat": fabric.beat} if fabric.beat > 1 else {})}


#: Folder of the bench in this package, and its name in an export.
SOURCE, BENCH = Path(__file__).parent / "bench" / "files", "bench"

#: Makefile of the bench, in which the top and the Verilog files are filled in.
MAKEFILE = f"{BENCH}/Makefile"

#: Files of every bench.
COMMON = ("Makefile", "collectives.py", "runs.py", "stalls.py", "test_fabric.py")


def files_beside(
    fabric: Fabric,
    modules: Sequence[str],
    *,
    command: str,
    title: str,
    flow: str | None = None,
    templates: bool = False,
) -> dict[str, str]:
    """Return the texts of all files other than the Verilog, by name.

    Parameters
    ----------
    modules : sequence of str
        Names of all modules in the text.
    command : str
        Command line that repeats the export.
    title : str
        Title of the fabric in one line.
    flow : str, optional
        Vendor flow, as for `torusfabric.verilog.emit`.
    templates : bool
        True if the files of `template_files` are included.
    """
    said = manifest(fabric, command=command, files=[], modules=modules)
    texts = dict(fabric.interface.files(said["top"], title))
    texts |= bench_files(Bench(fabric.interface.bench(), said["top"]))
    if flow is not None:
        from .flows import Flow, flow_files

        texts |= flow_files(Flow(flow), fabric, said, title)
    if templates:
        from .templates import template_files

        texts |= template_files(said, fabric.interface)
    return texts | {MANIFEST: as_json(said | {"files": [TEXT, *texts]})}


def bench_files(bench: Bench) -> dict[str, str]:
    """Return the texts of the files of a bench by name."""
    sources = sorted((dict(zip(COMMON, COMMON, strict=True)) | dict(bench.files)).items())
    texts = {f"{BENCH}/{name}": (SOURCE / source).read_text("utf-8") for name, source in sources}
    paths = " ".join([f"../{TEXT}", *bench.verilog])
    texts[MAKEFILE] = texts[MAKEFILE].format(top=bench.top, sources=paths)
    return texts | {f"{BENCH}/{name}": text for name, text in bench.verilog.items()}


def as_json(value: object) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(value, indent=2) + "\n"
