"""The manifest and all other files beside the Verilog.

`emit` adds these files to a design. ``manifest.json`` lists ports, modes, addresses and predicted
cycles as plain data, so that tools need no torusfabric to drive a fabric. Its readers are the
cocotb bench, the LiteX import and the commands that load tables.

Cycle c follows clock edge c. Edge 0 is the edge that takes the start pulse.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..collective import NO_NODE, OPERATORS, SIGNED, Collective, Operator
from ..contract.interface import BenchAdditions
from ..contract.ports import Protocol, ports_by_name
from ..program import CyclePiece, Mode, Program
from ..program.mode import Range
from ..rtl.fabric import Fabric
from ..rtl.netlist import Netlist
from ..topology import Faulty, Topology
from .design import MANIFEST, VERILOG_FILE

__all__ = ["BENCH_FOLDER", "TOP", "json_text", "bench_files", "companion_files", "interface_facts",
           "manifest", "port_facts"]  # fmt: skip

#: Name of the top module, after the prefix.
TOP = "fabric"

#: Version of the manifest; it increases when a key changes its meaning or is removed.
MANIFEST_VERSION = 1


#: Ports that the core and the host have, by name; the netlist declares those of other adapters.
PORT_MEANINGS = ports_by_name(
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
    """Return the facts about each port of the Verilog top, by the name of the port.

    The facts are a dict with direction, width, role, protocol, node, clock and meaning.

    Examples
    --------
    The port ``receive_1`` of node 1 carries data.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> netlist = tf.Fabric(program, width=8, top="core").netlist
    >>> port_facts(netlist)["receive_1"]["role"]
    'data'
    """
    meanings = {**PORT_MEANINGS, **netlist.declared}
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
        Names of all modules in the Verilog.
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
        **interface_facts(fabric),
        **({} if program.any_length else {"predicted_cycles": fabric.predicted_cycles}),
        "modes": [_mode_entry(fabric, number) for number in range(len(program.modes))],
        "topology": program.topology.to_entry(),
        **_original_numbers(program.topology),
        **({"relays": list(program.topology.relays)} if program.topology.relays else {}),
        **({"operator": str(program.operators[0])} if len(program.operators) == 1 else {}),
        **_operator_functions(program.operators),
        **_schedule_facts(fabric),
        "router_classes": len(fabric.router_classes),
        "command": command,
    }


def _original_numbers(topology: Topology) -> dict[str, list[int]]:
    """Return the entry ``numbers_in_whole``: each node's number in the network without faults.

    The result is empty if no node is broken.
    """
    if not isinstance(topology, Faulty) or not topology.broken_nodes:
        return {}
    return {"numbers_in_whole": topology.kept.tolist()}


def _operator_functions(operators: Sequence[Operator]) -> dict[str, dict[str, str]]:
    """Return the entry ``operator_functions``: operator -> ``module:function`` of another package.

    The bench imports the functions from there.
    """
    found = {
        operator.name: f"{operator.function.__module__}:{operator.function.__qualname__}"
        for operator in operators
        if operator.name not in (*OPERATORS, *SIGNED)
        and operator.function.__module__ != "__main__"
        # Without an importable name, as for a partial function, the operator is left out.
        and getattr(operator.function, "__qualname__", "").isidentifier()
    }
    return {"operator_functions": found} if found else {}


def _schedule_facts(fabric: Fabric) -> dict[str, Any]:
    """Return the entries ``collective``, ``algorithm``, ``rounds`` and others of a fabric.

    With several modes, each entry is a list with a value for each mode.
    """
    each = [
        {
            "collective": mode.schedule.collective.to_json() | _root_choice(mode),
            "algorithm": mode.algorithm_names,
            "chunks": mode.common_grain_flits,
            "rounds": mode.schedule.round_count,
            "schedule_digest": mode.schedule.digest,
        }
        for mode in fabric.program.modes
    ]
    if len(each) == 1:
        return each[0]
    return {name: [facts[name] for facts in each] for name in each[0]}


def _root_choice(mode: Mode) -> dict[str, str]:
    """Return the entry ``{"root": "any"}`` if runs choose the root of a mode, else an empty one."""
    return {"root": "any"} if mode.any_root else {}


def _offset_facts(mode: Mode) -> dict[str, Any]:
    """Return the entries ``offsets`` and ``origins`` of an exchange or halo, and unequal lengths.

    ``origins[p][k]`` is the node, by its position in the group, from which position p receives by
    offset k, or None. The result is empty if `mode` has another collective.
    """
    blocks, collective = mode.schedule.blocks, mode.schedule.collective
    unequal = {
        f"{name}_flits": lengths.tolist()
        for name in ("sent", "received")
        if (lengths := getattr(blocks, f"{name}_lengths")) is not None
    }
    if not collective.local:
        return unequal
    origins = blocks.origin_of_part(
        np.arange(blocks.group_size)[:, None], np.arange(blocks.messages_per_receiver)[None, :]
    )
    names = collective.offsets or blocks.groups.group_topology.port_names
    listed = [[None if k == NO_NODE else k for k in each] for each in origins.tolist()]
    if collective.traffic is not None:
        return {"origins": listed, "messages": _message_entries(collective), **unequal}
    return {"offsets": list(names), "origins": listed}


def _message_entries(collective: Collective) -> list[dict[str, Any]]:
    """Return an entry for each message of a pattern: its nodes, number, flits and tag."""
    assert collective.traffic is not None
    numbered = zip(collective.traffic.messages, collective.traffic.message_numbers, strict=True)
    return [
        {"source": message.source, "destinations": list(message.destinations), "number": number,
         "flits": message.words, "tag": message.tag}
        for message, number in numbered
    ]  # fmt: skip


def _mode_entry(fabric: Fabric, number: int) -> dict[str, Any]:
    """Return the entry of mode `number` in the manifest: collective, words, cycles and others."""
    mode, layout = fabric.program.modes[number], fabric.layouts[number]
    collective, own = mode.schedule.collective, mode.schedule.topology
    axes = range(own.dimensions) if collective.axes is None else collective.axes
    return {
        "mode": number,
        "collective": collective.kind,
        "axes": list(axes),
        **({"without": list(collective.without)} if collective.without else {}),
        **({"groups": [list(group) for group in collective.members]} if collective.members else {}),
        # A mode may leave out links that other modes use.
        **({} if own == fabric.program.topology else {"topology": own.to_entry()}),
        "root": collective.root if collective.rooted else None,
        **_root_choice(mode),
        **_offset_facts(mode),
        "algorithm": mode.algorithm_names,
        "operators": [operator.name for operator in mode.operators],
        **_order_facts(fabric.program, number),
        "chunks": mode.common_grain_flits,
        "send_words": layout.send_words,
        "recv_words": layout.recv_words,
        "cycles": _cycle_entries(mode.cycle_pieces(fabric.flits)),
        **(
            {"forms": [_form_entry(mode, each) for each in mode.ranges]}
            if mode.has_several_ranges
            else {}
        ),
    }


def _order_facts(program: Program, number: int) -> dict[str, Any]:
    """Return the entry ``operand_orders`` of a mode: the order in which its runs combine words.

    The entry is empty if all operators of mode `number` are associative. Otherwise it is a list
    with an entry for each range of lengths and each root: the shortest length ``from``, the
    ``root``, and the ``trees``, in which a number stands for the position of a node in its group.
    ``tree_of_flit[group][part][k]`` is the number of the tree that forms flits k, k + n, k + 2 n ..
    of a part; the list has n numbers. A node receives the part with its own number in a
    reduce-scatter, and part 0 otherwise.
    """
    mode = program.modes[number]
    if all(operator.associative for operator in mode.operators):
        return {}
    roots = range(mode.groups.group_size) if mode.any_root else [None]
    ends = [*mode.range_starts[1:], program.flits + 1]
    return {
        "operand_orders": [
            {"from": served.start, "root": root}
            | _orders_of_range(program, number, served, end - 1, root)
            for served, end in zip(mode.ranges, ends, strict=True)
            for root in roots
        ]
    }


def _orders_of_range(
    program: Program, number: int, served: Range, longest: int, root: int | None
) -> dict[str, Any]:
    """Return the entries ``trees`` and ``tree_of_flit`` for a mode, a range of lengths and a root.

    The messages of the range `served` have at most `longest` flits.
    """
    mode = program.modes[number]
    form, length = mode.form_at(served.form), program.flits
    if program.any_length:
        length = min(longest, max(served.start, form.grain_flits))
    orders = program.operand_orders(mode=number, length=length, root=root)
    position, collective = mode.groups.position_of_node, mode.schedule.collective
    period = form.grain_flits if program.any_length else length
    columns = slice(min(period, length))

    def receiving_nodes(members: list[int]) -> list[int]:
        """Return one node that receives each part."""
        single = collective.root or 0 if root is None else root
        return members if collective.personal else [members[single]]

    return {
        "trees": [
            re.sub(r"\d+", lambda found: str(position[int(found[0])]), tree)
            for tree in orders.trees
        ],
        "tree_of_flit": [
            [
                orders.tree_of_word[node, columns].tolist()
                for node in receiving_nodes(nodes.tolist())
            ]
            for nodes in mode.groups.node_lists
        ],
    }


def _form_entry(mode: Mode, served: Range) -> dict[str, Any]:
    """Return the entry of the form of `mode` that serves messages of the lengths `served`.

    It has the shortest of these lengths, the algorithm and the cycles.
    """
    start, form = served.start, mode.form_at(served.form)
    schedule = form.schedule
    return {
        "from": start,
        "algorithm": schedule.algorithm,
        "chunks": form.grain_flits,
        "rounds": schedule.round_count,
        "schedule_digest": schedule.digest,
        "cycles": _cycle_entries(form.cycle_pieces(-(-start // form.grain_flits))),
    }


def _cycle_entries(pieces: Iterable[CyclePiece]) -> list[dict[str, int]]:
    """Return the cycles of a run for each range of lengths, as entries of the manifest.

    A run in which a chunk has n flits takes ``constant + per_flit * n`` cycles. An entry holds for
    all n from its ``from`` up to that of the next entry.
    """
    return [
        {"from": piece.first, "constant": piece.constant, "per_flit": piece.per_flit}
        for piece in pieces
    ]


def interface_facts(fabric: Fabric) -> dict[str, Any]:
    """Return the entries of the manifest that depend on the ports, which ``--top`` chooses.

    Examples
    --------
    A host port has the address at which received words begin. Without memories, received words
    arrive on streams at the in-ports.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="one-packet"))
    >>> interface_facts(tf.Fabric(program, top="host"))["recv_base"]
    16
    >>> interface_facts(tf.Fabric(program, top="core"))["streams"]["receive"]
    ['+0', '-0', '+1', '-1']
    """
    return {
        **fabric.interface.manifest_entries(),
        **({"beat": fabric.beat} if fabric.beat > 1 else {}),
    }


#: Folder of the bench in this package, and its name in an export.
BENCH_SOURCES, BENCH_FOLDER = Path(__file__).parent / "bench" / "files", "bench"

#: Makefile of the bench, in which the top and the Verilog files are filled in.
MAKEFILE = f"{BENCH_FOLDER}/Makefile"

#: Files of every bench.
COMMON_BENCH_FILES = ("Makefile", "collectives.py", "runs.py", "stalls.py", "test_fabric.py")


def companion_files(
    fabric: Fabric,
    modules: Sequence[str],
    *,
    command: str,
    title: str,
    flow: str | None = None,
    templates: bool = False,
) -> dict[str, str]:
    """Return the text of each file beside the Verilog, such as the manifest, by its name.

    Parameters
    ----------
    modules : sequence of str
        Names of all modules in the Verilog.
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
    texts = dict(fabric.interface.description_files(said["top"], title))
    texts |= bench_files(BenchAdditions(fabric.interface.bench_files(), said["top"]))
    if flow is not None:
        from .flows import Flow, flow_files

        texts |= flow_files(Flow(flow), fabric, said, title)
    if templates:
        from .templates import template_files

        texts |= template_files(said, fabric.interface)
    return texts | {MANIFEST: json_text(said | {"files": [VERILOG_FILE, *texts]})}


def bench_files(bench: BenchAdditions) -> dict[str, str]:
    """Return the text of each file of a cocotb bench, by its path in the export.

    Parameters
    ----------
    bench : BenchAdditions
        The name of the top module, and the files that this kind of fabric adds to every bench.
    """
    sources = sorted(
        (dict(zip(COMMON_BENCH_FILES, COMMON_BENCH_FILES, strict=True)) | dict(bench.files)).items()
    )
    texts = {
        f"{BENCH_FOLDER}/{name}": (BENCH_SOURCES / source).read_text("utf-8")
        for name, source in sources
    }
    paths = " ".join([f"../{VERILOG_FILE}", *bench.verilog])
    texts[MAKEFILE] = texts[MAKEFILE].format(top=bench.top, sources=paths)
    return texts | {f"{BENCH_FOLDER}/{name}": text for name, text in bench.verilog.items()}


def json_text(value: object) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(value, indent=2) + "\n"
