"""Verilog of a fabric: every module once, and a structural top."""

import json
import re
import tempfile
from collections import Counter
from pathlib import Path

from amaranth.back import rtlil

from .. import __version__
from ..rtl.netlist import Fixed
from ..toolchain import tools
from ..toolchain.files import writable, write_file
from .design import Design, RouterShape

__all__ = ["emit", "manifest", "module_il", "module_texts", "write"]

#: Verilator warnings that the emitted text gives rise to, each with the reason why it is harmless.
WAIVED = {
    "DECLFILENAME": "one file holds all modules, so that it can be copied as one",
    "UNUSEDSIGNAL": "modules of all classes have the same ports, and counters an unused carry",
    "WIDTHTRUNC": "a logical not asks whether a whole word is zero",
    "WIDTHEXPAND": "operands of sums and comparisons are written at their own widths",
}

#: Makes plain Verilog of RTLIL: one module a component, without traces of its source.
SCRIPT = """\
read_rtlil modules.il
proc -nomux -norom
memory_collect
attrmap -remove generator -remove top -remove src -remove amaranth.hierarchy -remove init
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy
write_verilog modules.v
"""


def emit(fabric, *, command):
    """The Verilog of a fabric.

    Parameters
    ----------
    fabric : Fabric
    command : str
        The command that makes it, for the header.

    Returns
    -------
    Design
    """
    netlist = fabric.netlist
    modules = module_texts(netlist)
    top = top_text(netlist, modules)
    counts = Counter(instance.module for instance in netlist.instances)
    inner = {
        name: Counter(re.findall(rf"^  ({'|'.join(modules)}) \w+ \(", text, re.M))
        for name, text in modules.items()
    }
    routers = [name for name in netlist.modules if name.startswith("router_")]
    return Design(
        modules=modules | {"fabric": top},
        top="fabric",
        instances={name: dict(c) for name, c in inner.items() if c} | {"fabric": dict(counts)},
        classes=[(name, counts[name]) for name in routers],
        outports=dict.fromkeys(routers, ("tx",)),
        inports={name: {"rx": "crossbar", "inject": "injection"} for name in routers},
        shapes=_shapes(fabric, routers),
        parts={name: part for name in modules if (part := _part_of_fabric(name, routers))},
        header=header(fabric, command),
    )


def _shapes(fabric, routers):
    """The outer form of each router."""
    instances = {instance.module: instance for instance in fabric.netlist.instances}
    shapes = {}
    for name in routers:
        inputs = instances[name].inputs
        lanes = sum(part.width for part in inputs["inject"]) // fabric.width
        settings = len(fabric.program.select) if "setting" in inputs else 0
        # More words than ports cannot leave at once.
        shapes[name] = RouterShape(fabric.ports, min(lanes, fabric.ports), fabric.width, settings)
    return shapes


def _part_of_fabric(name, routers):
    """The part of the fabric that a module is, or None for a router."""
    if name in routers:
        return None
    parts = {"router": "settings", "read_mux": "read tree", "combiner": "operators"}
    found = re.match("router|read_mux|endpoint|host|sequencer|combiner", name)
    return parts.get(found[0], found[0]) if found else "other"


def header(fabric, command):
    """The comment above the text: what it is, and how to make it again."""
    schedule = fabric.program.schedule
    lines = [
        f"{schedule.topology} {_collective(fabric)} by {schedule.algorithm}: "
        f"{fabric.width} bits a flit, {fabric.flits} flits a message, {fabric.cycles} cycles",
        f"made by torusfabric {__version__}:",
        f"  {command}",
    ]
    text = "".join(f"// {line}\n" for line in lines)
    for name, reason in WAIVED.items():
        text += f"/* verilator lint_off {name} */ // {reason}\n"
    return text


def _collective(fabric):
    """The collective in words."""
    collective = fabric.program.schedule.collective
    if collective.reducing:
        return f"{collective} ({fabric.program.operator})"
    return f"{collective} from any root" if "root" in fabric.netlist.inputs else collective


def module_il(netlist):
    """All modules of a netlist in the intermediate language of Yosys."""
    return "".join(
        rtlil.convert(make(), name=name, emit_src=False) for name, make in netlist.modules.items()
    )


def module_texts(netlist, il=None):
    """The text of each module of a netlist, by name."""
    il = module_il(netlist) if il is None else il
    with tempfile.TemporaryDirectory(prefix="torusfabric-") as folder:
        Path(folder, "modules.il").write_text(il)
        Path(folder, "script.ys").write_text(SCRIPT)
        tools.run(
            "yosys",
            ["-q", "-s", "script.ys"],
            folder=folder,
            log="yosys.log",
            what="writing Verilog",
        )
        text = Path(folder, "modules.v").read_text()
    # A component inside a component becomes a module whose name has a dot in it.
    text = re.sub(r"\\(\w+)\.(\w+) ", r"\1_\2", text)
    # Verilator frowns on values in declarations of registers, not on those of initial blocks.
    # Processes that must run once at the start are triggered by a register that never changes.
    text = re.sub(r"\\\$auto\$\S+", "unused_trigger", text)
    text = re.sub(
        r"^  reg (.*?)(\S+ ?) = (\S+);$", r"  reg \1\2;\n  initial \2 = \3;", text, flags=re.M
    )
    texts = re.findall(r"^module .*?^endmodule\n", text, re.M | re.S)
    return {re.split(r"\W+", text)[1]: _short_memories(text) for text in reversed(texts)}


def _short_memories(text):
    """Write memories that start as zeros with a loop instead of a line a word."""

    def loop(match):
        name, last, zero = match["name"], match["last"], match["zero"]
        label = "init_" + re.sub(r"\W", "_", name.strip("\\ "))
        return (
            f"  initial begin : {label}\n    integer k;\n"
            f"    for (k = 0; k <= {last}; k = k + 1) {name}[k] = {zero};\n  end\n"
        )

    return re.sub(
        r"  initial begin\n(?:    (?P<name>\S+ ?)\[(?P<last>\d+)\] = (?P<zero>\d+'h0+);\n)+  end\n",
        lambda m: loop(m) if len({*re.findall(r"= (\d+'h0+);", m[0])}) == 1 else m[0],
        text,
    )


def top_text(netlist, modules):
    """The structural top of a netlist."""
    ports = ["clk", "rst", *netlist.inputs, *netlist.outputs]
    lines = [f"module fabric({', '.join(ports)});", "  input clk;", "  input rst;"]
    for kind, nets in (("input", netlist.inputs), ("output", netlist.outputs)):
        lines += [f"  {kind} {_range(width)}{name};" for name, width in nets.items()]
    lines += [
        f"  wire {_range(width)}{name};"
        for name, width in netlist.nets.items()
        if name not in netlist.inputs
    ]
    for name, parts in netlist.wired.items():
        lines.append(f"  assign {name} = {_concatenation(netlist, parts)};")
    for instance in netlist.instances:
        has_ports = modules[instance.module].partition(";")[0]
        shared = [name for name in ("clk", "rst") if re.search(rf"\b{name}\b", has_ports)]
        pins = [f".{name}({name})" for name in shared]
        pins += [
            f".{port}({_concatenation(netlist, parts)})"
            for port, parts in instance.inputs.items()
            if re.search(rf"\b{port}\b", has_ports)
        ]
        pins += [f".{port}({net})" for port, net in instance.outputs.items()]
        lines.append(f"  {instance.module} {instance.name} (")
        lines.append(",\n".join(f"    {pin}" for pin in pins) + "\n  );")
    return "\n".join([*lines, "endmodule\n"])


def _range(width):
    return f"[{width - 1}:0] " if width > 1 else ""


def _concatenation(netlist, parts):
    """Parts of nets as an expression, the most significant first."""
    texts = [_part(netlist, part) for part in reversed(parts)]
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def _part(netlist, part):
    if isinstance(part, Fixed):
        return f"{part.width}'d{part.value}"
    if part.start == 0 and part.width == netlist.nets[part.net]:
        return part.net
    if part.width == 1:
        return f"{part.net}[{part.start}]"
    return f"{part.net}[{part.start + part.width - 1}:{part.start}]"


def manifest(fabric, *, command, files):
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


def write(fabric, folder, *, command):
    """Write ``fabric.v`` and ``manifest.json`` into a folder, which is made if need be.

    For a core, ``places.json`` says which block arrives, or lies, where.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    folder = Path(folder)
    writable(folder / "fabric.v", make=True)
    design = emit(fabric, command=command)
    described = manifest(fabric, command=command, files=["fabric.v"])
    write_file(folder / "fabric.v", design.text)
    if fabric.top == "core":
        write_file(folder / "places.json", json.dumps(fabric.places()) + "\n")
    write_file(folder / "manifest.json", json.dumps(described, indent=2) + "\n")
    return design
