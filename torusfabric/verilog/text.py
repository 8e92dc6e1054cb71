"""Verilog of a fabric: every module once, and a structural top."""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.lib.wiring import Out

from ..program import Mode
from ..rtl.arrays import Array, Slice
from ..rtl.combiner import ChosenSum
from ..rtl.fabric import Fabric
from ..rtl.memories import LOOK_UP
from ..rtl.modules import SharedModule, given_names
from ..rtl.multiplexer import Multiplexer
from ..rtl.netlist import ROM, Fixed, Netlist, Part, Parts, Role
from ..rtl.router import Router
from ..toolchain.quoting import line_comment
from ..toolchain.values import of_type
from ..toolchain.version import __version__
from ..topology import IntArray, Topology
from .compact import CompactTop
from .design import Design, PlainNames, RomContents, RouterShape
from .diagram import Diagram
from .ecp5 import ECP5, multiplexer_body, sum_body
from .flows import Flow
from .flows.regions import in_rows, longest_link
from .lines import declared, filled
from .lut6 import LUT6, lut6_body
from .manifest import TOP, files_beside
from .memory_rule import AUTO, MemoryRule
from .module_text import ModuleText, Port, Structure
from .syntax import bits_of, concatenated, range_of
from .writer import Heading, write_module

__all__ = ["contents_of", "emit", "header", "module_texts", "top_structure", "top_text"]

#: Verilator warnings that the emitted text gives rise to, each with the reason why it is harmless.
WAIVED = {
    "DECLFILENAME": "one file holds all modules, so that it can be copied as one",
    "UNUSEDSIGNAL": "modules of all classes have the same ports, and counters an unused carry",
}

#: And that an input called abort gives rise to.
WAIVED_OF_ABORT = {"SYMRSVDWORD": "the input abort is called so in Verilog alone"}

#: Nodes that a comment lists; of more it says how many there are.
LISTED = 8

#: Out-ports of a router, and its inputs that bring data with the part of a report they begin.
OUTPORTS = ("tx",)
INPORTS = {"rx": "crossbar", "inject": "injection"}


def emit(  # noqa: PLR0913 (one choice of a user each)
    fabric: Fabric,
    *,
    command: str = "torusfabric verilog",
    diagrams: Sequence[Diagram] | None = None,
    ram: str = "auto",
    flow: str | None = None,
    templates: bool = False,
    fold: bool = False,
    compact: bool = False,
) -> Design:
    """The Verilog of a fabric, with all files that go with it.

    Parameters
    ----------
    command : str
        The command that makes it, for the header.
    diagrams : sequence of Diagram, optional
        If they are given, there is a page about the ports with them.
    ram : str
        What memories are made of, as of `MemoryRule.parse`.
    flow : str, optional
        ``vivado`` or ``quartus``: a project for it is among the files, and IP-XACT.
    templates : bool
        Whether an instance to be copied is among the files, and assertions to be bound.
    fold : bool
        Whether the header has a table of where nodes lie in the folded torus, and regions for
        nextpnr are among the files.
    compact : bool
        Whether what there is for each node is a generate loop; see `torusfabric.verilog.compact`.

    Raises
    ------
    InputError
        If it is no fabric, or there is no such rule or flow.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    >>> "module fabric (" in tf.emit(fabric).text
    True
    """
    of_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    netlist, prefix = fabric.netlist, fabric.prefix
    modules = module_texts(netlist, prefix, MemoryRule.parse(ram))
    contents = contents_of(netlist)
    names = {value: name for name, value in contents.items()}
    counts = _counts(netlist, prefix, names)
    roles = {prefix + name: role for name, role in netlist.roles.items()}
    routers = {prefix + a.module: a for a in netlist.arrays if a.role is Role.ROUTER}
    top = prefix + TOP
    structures = {name: module.structure for name, module in modules.items()}
    texts = {name: module.text for name, module in modules.items()}
    loops = CompactTop(netlist, prefix, structures) if compact else None
    said = _folded(fabric.program.topology) if fold else []
    if loops:
        top_of_all = loops.text(top, _declarations(top_structure(netlist, compact=True)))
        said += loops.about
    else:
        top_of_all = top_text(netlist, top, prefix, structures, names)
    return Design(
        modules=texts | {top: top_of_all},
        top=top,
        instances={name: module.children for name, module in modules.items() if module.children}
        | {top: dict(counts)},
        structures=structures | {top: top_structure(netlist, compact=compact)},
        classes=[(name, counts[name]) for name in routers],
        outports=dict.fromkeys(routers, OUTPORTS),
        # One that only forwards injects nothing.
        inports={
            name: {port: part for port, part in INPORTS.items() if port in router.inputs}
            for name, router in routers.items()
        },
        shapes=_shapes(fabric, routers),
        parts=_parts(roles, modules) | dict.fromkeys(contents, Role.ROM.value),
        contents=contents,
        settings=_settings(netlist, names, routers),
        inner=frozenset(name for name, module in modules.items() if module.inner),
        interface=fabric.top.value,
        prefix=prefix,
        instance_parts={} if compact else _instance_parts(netlist),
        comments={prefix + name: comment for name, comment in _nodes(netlist).items()},
        header=header(fabric, command, said),
        files=files_beside(
            fabric,
            [*modules, top],
            command=command,
            title=_title(fabric),
            diagrams=diagrams,
            flow=None if flow is None else Flow(flow),
            templates=templates,
            fold=fold,
            compact=compact,
        ),
        plain_names=loops.plain_names if loops else PlainNames(),
    )


def _folded(topology: Topology) -> list[str]:
    """Where nodes lie in the folded torus."""
    rows, size = in_rows(topology), len(str(topology.nodes - 1))
    table = [" ".join(f"{node:>{size}}" for node in row) for row in rows]
    far = longest_link(topology)
    return [f"nodes side by side in the folded torus, longest link {far}, in regions:", *table]


def contents_of(netlist: Netlist) -> dict[str, RomContents]:
    """The different contents of ROMs, by the name of the first instance with each."""
    found: dict[RomContents, tuple[int, int, str]] = {}
    for array in netlist.arrays:
        if array.which is None:
            continue
        used, first = np.unique(array.which, return_index=True)
        for number, at in zip(used.tolist(), first.tolist(), strict=True):
            index = int(array.index[at])
            known = array.rank, index, array.name.format(index)
            contents = RomContents(array.contents[number], array.width)
            found[contents] = min(known, found.get(contents, known))
    return {name: contents for contents, (*_, name) in sorted(found.items(), key=lambda f: f[1])}


def _counts(netlist: Netlist, prefix: str, names: Mapping[RomContents, str]) -> Counter[str]:
    """How many instances there are of each module, and of each contents of ROMs."""
    found = Counter[str]()
    for array in netlist.arrays:
        if array.which is None:
            found[prefix + array.module] += len(array)
            continue
        for number, times in enumerate(np.bincount(array.which).tolist()):
            if times:
                found[names[RomContents(array.contents[number], array.width)]] += times
    return found


def _settings(
    netlist: Netlist, names: Mapping[RomContents, str], routers: Mapping[str, Array]
) -> dict[str, dict[str, dict[str, int]]]:
    """The contents of ROMs that drive inputs of routers, and how often."""
    roms: dict[str, dict[int, str]] = defaultdict(dict)
    for array in netlist.arrays:
        if array.which is not None:
            of = [names[RomContents(rows, array.width)] for rows in array.contents]
            (net, _) = array.outputs["data"]
            roms[net] |= {k: of[number] for k, number in
                          zip(array.index.tolist(), array.which.tolist(), strict=True)}  # fmt: skip
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for name, router in routers.items():
        for port, parts in router.inputs.items():
            nets = {part.net for part in parts if isinstance(part, Slice)} & roms.keys()
            if nets:
                each = (roms[net][k] for net in nets for k in router.index.tolist())
                found[name][port] = dict(Counter(each))
    return dict(found)


def _shapes(fabric: Fabric, routers: Mapping[str, Array]) -> dict[str, RouterShape]:
    """The outer form of each router."""
    netlist = fabric.netlist
    looked_up = {part.net for array in routers.values() for part in array.inputs.get("setting", ())
                 if isinstance(part, Slice)}  # fmt: skip
    rows = max((len(rows) for array in netlist.arrays for rows in array.contents
                if array.outputs["data"][0] in looked_up), default=0)  # fmt: skip
    shapes = {}
    for name, array in routers.items():
        ports = array.outputs["tx"][1] // fabric.width
        # Of the ROM in front of it; without one the sequencer gives the select bits.
        settings = rows if "setting" in array.inputs else 0
        router = netlist.modules[array.module]()
        assert isinstance(router, Router), "a router"
        own = {word for output in router.crossbar.outputs for word in output.words if word >= ports}
        shapes[name] = RouterShape(ports, max(1, len(own)), fabric.width, settings)
    return shapes


def _parts(roles: Mapping[str, Role], modules: dict[str, ModuleText]) -> dict[str, str]:
    """The part of the fabric that each module is, those inside others included; no routers."""
    parts: dict[str, str] = {}
    for name in reversed(modules):  # parents come before their children
        role = roles.get(name)
        if role is Role.ROUTER:
            continue
        if role is not None:
            parts[name] = role.value
        for child in modules[name].children:
            parts.setdefault(child, parts.get(name, Role.OTHER.value))
    return parts


def _nodes(netlist: Netlist) -> dict[str, str]:
    """Of which nodes each module is."""
    arrays: dict[str, list[IntArray]] = defaultdict(list)
    for array in netlist.arrays:
        if array.nodes is not None and array.role is not Role.ROM:
            arrays[array.module].append(array.nodes)
    found = {name: np.sort(np.concatenate(each)) for name, each in arrays.items()}
    comments = {}
    everyone = len(np.unique(np.concatenate([*found.values()]))) if found else 0
    for name, nodes in found.items():
        if len(nodes) == everyone:
            comments[name] = f"Of all {len(nodes)} nodes."
            continue
        listed = ", ".join(map(str, nodes[:LISTED].tolist()))
        more = f", .. ({len(nodes)} in all)" if len(nodes) > LISTED else ""
        comments[name] = f"Of node{'s' * (len(nodes) > 1)} {listed}{more}."
    return comments


def _instance_parts(netlist: Netlist) -> dict[str, str]:
    """The part of the fabric that each instance is, and of which node."""
    return {
        i.name: i.role.value + ("" if i.node is None else f" of node {i.node}")
        for i in netlist.instances
    }


def header(fabric: Fabric, command: str, more: Sequence[str] = ()) -> str:
    """The comment above the text: what it is, and how to make it again."""
    lines = [
        _title(fabric),
        f"made by torusfabric {__version__}:",
        f"  {command}",
        *more,
    ]
    text = "".join(f"{line_comment(line)}\n" for line in lines)
    waived = WAIVED | (WAIVED_OF_ABORT if "abort" in fabric.netlist.inputs else {})
    for name, reason in waived.items():
        text += f"/* verilator lint_off {name} */ // {reason}\n"
    return text


def _title(fabric: Fabric) -> str:
    """What a fabric is, in a line."""
    program, most = fabric.program, "up to " * fabric.program.any_length
    modes = ", ".join(f"{_collective(m)} by {m.algorithms}" for m in program.modes)
    return (
        f"{program.topology.title} {modes}: "
        f"{fabric.width} bits a flit, {most}{fabric.flits} flits a message, "
        f"{most}{fabric.predicted_cycles} cycles"
    )


def _collective(mode: Mode) -> str:
    """The collective in words."""
    collective = mode.schedule.collective
    if collective.reducing:
        return f"{collective} ({', '.join(map(str, mode.operators))})"
    return f"{collective} from any root" if mode.any_root else str(collective)


def top_structure(netlist: Netlist, *, compact: bool = False) -> Structure:
    """The ports and nets of the structural top; if compact, those that have names of their own."""
    ports = {name: Port("input") for name in ("clk", "rst")}
    ports |= {name: Port("input", width) for name, width in netlist.inputs.items()}
    ports |= {name: Port("output", width) for name, width in netlist.outputs.items()}
    nets = netlist.single_nets if compact else netlist.nets
    return Structure(ports, {name: w for name, w in nets.items() if name not in ports})


def _declarations(structure: Structure) -> dict[str, str]:
    """The declarations of ports, by their names."""
    return {
        name: f"{port.direction} wire {range_of(port.width)}{name}"
        for name, port in structure.ports.items()
    }


def top_text(
    netlist: Netlist,
    top: str,
    prefix: str,
    modules: Mapping[str, Structure],
    names: Mapping[RomContents, str],
) -> str:
    """The structural top of a netlist; contents of ROMs that are equal are there once.

    Parameters
    ----------
    top, prefix : str
        Its name, and what the names of all other modules begin with.
    modules : dict of str to Structure
        What it has instances of.
    names : dict of RomContents to str
        Those of contents.
    """
    structure = top_structure(netlist)
    lines = [f"module {top} (", *declared(_declarations(structure)), ");"]
    by_width: dict[int, list[str]] = defaultdict(list)
    for name, width in structure.signals.items():
        by_width[width].append(name)
    for width, nets in by_width.items():
        lines += filled(f"  wire {range_of(width)}", nets, ";")
    for contents, name in names.items():
        constant = f"{name}_contents = {contents.constant}"
        lines.append(f"  localparam {range_of(contents.bits)}{constant};")
    for name, parts in netlist.wired.items():
        lines.append(f"  assign {name} = {_concatenation(netlist, parts)};")
    for instance in netlist.instances:
        known = modules[prefix + instance.module].ports
        pins = [f".{name}({name})" for name in ("clk", "rst") if name in known]
        pins += [
            f".{port}({_concatenation(netlist, parts)})"
            for port, parts in instance.inputs.items()
            if port in known
        ]
        pins += [f".{port}({net})" for port, net in instance.outputs.items()]
        parameters = ""
        if instance.role is Role.ROM:
            contents = RomContents(instance.contents, instance.width)
            parameters = f" #({contents.parameters(f'{names[contents]}_contents')})"
        lines.append(f"  {prefix}{instance.module}{parameters} {instance.name} (")
        lines += filled("    ", pins, ");")
    return "\n".join([*lines, "endmodule\n"])


def _concatenation(netlist: Netlist, parts: Parts) -> str:
    """Parts of nets as an expression, the most significant first; neighbours are one."""
    joined: list[Part | Fixed] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            isinstance(part, Part)
            and isinstance(last, Part)
            and (part.net, part.start) == (last.net, last.start + last.width)
        ):
            joined[-1] = last._replace(width=last.width + part.width)
        else:
            joined.append(part)
    return concatenated(
        [
            f"{part.width}'d{part.value}"
            if isinstance(part, Fixed)
            else bits_of(part.net, part.start, part.width, netlist.nets[part.net])
            for part in reversed(joined)
        ]
    )


#: The ports of what lies here as a file; how wide they are is said by parameters.
TABLE = {"address": Port("input", 0), "data": Port("output", 0)}


def module_texts(
    netlist: Netlist, prefix: str = "", rule: MemoryRule = AUTO
) -> dict[str, ModuleText]:
    """The text of each module of a netlist, children before their parents.

    Parameters
    ----------
    prefix : str
        What the names of all modules begin with.
    rule : MemoryRule
        What memories are made of.
    """
    with given_names():
        own: dict[str, ModuleText] = {}
        for name, make in netlist.modules.items():
            leaf = make()
            about = (inspect.getdoc(type(leaf)) or "").partition("\n")[0]
            heading = Heading(name, prefix, about, leaf.kept)
            ports = {port: getattr(leaf, port) for port in leaf.signature.members}
            members = leaf.signature.members.items()
            outputs = [port for port, member in members if member.flow is Out]
            own[prefix + name] = write_module(heading, leaf, ports, outputs=outputs, rule=rule)
        inner: dict[str, ModuleText] = {}
        _add_shared(inner, prefix, [each for module in own.values() for each in module.shared])
    if any(prefix + LOOK_UP in module.children for module in own.values()):
        found = _written(prefix, LOOK_UP, TABLE, inner=True)
        inner = {prefix + LOOK_UP: found} | inner
    if ROM in netlist.counts:
        inner[prefix + ROM] = _written(prefix, ROM, {"clk": Port("input")} | TABLE)
    return inner | own


def _written(prefix: str, name: str, ports: dict[str, Port], *, inner: bool = False) -> ModuleText:
    """A module that lies here as a file."""
    text = Path(__file__).with_name(f"{name}.v").read_text(encoding="utf-8")
    text = text.replace(f"module {name} ", f"module {prefix}{name} ", 1)
    return ModuleText(text, Structure(ports), {}, inner=inner)


def _add_shared(texts: dict[str, ModuleText], prefix: str, shared: Sequence[SharedModule]) -> None:
    """Add the modules that others share, behind those that they have instances of."""
    for each in sorted(shared, key=lambda module: module.name):
        if prefix + each.name not in texts:
            text = _shared_text(each, prefix)
            _add_shared(texts, prefix, text.shared)
            texts[prefix + each.name] = text


#: The other bodies of modules that many share, by what is defined for devices with such cells.
BODIES: dict[type, dict[str, Callable[[Any], str | None]]] = {
    Multiplexer: {ECP5: multiplexer_body, LUT6: lut6_body},
    ChosenSum: {ECP5: sum_body},
}


def _shared_text(shared: SharedModule, prefix: str) -> ModuleText:
    """A module that others share, where it pays with other bodies for some devices."""
    bodies = {define: of(shared.shape) for define, of in BODIES.get(type(shared.shape), {}).items()}
    ports = shared.ports()
    text = write_module(
        Heading(shared.name, prefix, shared.about, shared.kept, shared.clocked),
        shared.module(ports),
        {port.name: port for port in ports},
        instead={define: body for define, body in bodies.items() if body},
    )
    return text._replace(inner=not shared.kept)
