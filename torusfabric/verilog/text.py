"""`emit`: from a `Fabric` to a `Design`.

The emitted Verilog has each leaf module of the netlist once, written by `write_module`, and a
structural top, written by `TopText`, in which instances of the leaf modules stand in generate loops
over nodes. Two modules, the ROM and the look-up of a table, are Verilog files of this folder.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from amaranth.lib.wiring import Out

from ..program import Mode
from ..rtl.amaranth_private import no_inferred_names
from ..rtl.arrays import Array
from ..rtl.fabric import Fabric
from ..rtl.memories import LOOK_UP
from ..rtl.modules import Leaf, SharedModule, UnknownToZero
from ..rtl.multiplexer import Multiplexer, Selector
from ..rtl.netlist import ROM, Netlist, Role
from ..toolchain.public import public
from ..toolchain.quoting import line_comment
from ..toolchain.values import require_type
from ..toolchain.version import __version__
from ..topology import IntArray
from .design import Design, router_classes
from .manifest import TOP, companion_files
from .module_text import AUTO, TOOL_RULE, MemoryRule, ModuleText, Port, Structure
from .syntax import concatenate_names
from .top import TopText, distinct_rom_contents, instance_counts
from .writer import Heading, write_module

__all__ = ["emit", "header_comment", "module_texts", "split_by_memory_rule"]

#: Verilator warnings that the emitted Verilog causes, each with the reason why it is harmless.
WAIVED_WARNINGS = {
    "DECLFILENAME": "one file holds all modules, so that it can be copied as one",
    "UNUSEDSIGNAL": "modules of all classes have the same ports, and counters an unused carry",
}

#: Further warnings of fabrics with clock crossings, each with the reason why it is harmless.
WAIVED_CROSSING_WARNINGS = {
    "SYNCASYNCNET": "the reset of one side of a crossing sets that of the other, through registers"
}

#: Most nodes that a comment lists by their numbers; longer lists end in the number of nodes.
MOST_LISTED = 8


@public
def emit(
    fabric: Fabric,
    *,
    command: str = "torusfabric verilog",
    ram: str = AUTO,
    flow: str | None = None,
    templates: bool = False,
) -> Design:
    """Return the Verilog of a fabric, with all files that go with it.

    Parameters
    ----------
    command : str
        Command line that repeats the export, for the header of the Verilog and for the manifest.
    ram : str
        Memory rule in the notation of `MemoryRule.parse`: the RAM style of each memory.
    flow : str, optional
        ``vivado``, ``quartus``, ``librelane`` or ``tinytapeout``: adds a project to the files.
    templates : bool
        True if the files include an instance of the fabric to copy, and assertions to bind.

    Returns
    -------
    Design
        Modules and files in memory; `Design.write` writes them.

    Raises
    ------
    InputError
        If `fabric` is no `Fabric`, `ram` no memory rule, or `flow` no flow.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    >>> "module fabric (" in tf.emit(fabric).text
    True
    """
    require_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    require_type("Command", command, str, "text")
    prefix, top = fabric.prefix, fabric.prefix + TOP
    netlist, rules = split_by_memory_rule(fabric.netlist, MemoryRule.parse(ram))
    modules = module_texts(netlist, prefix, rules)
    contents = distinct_rom_contents(netlist)
    names = {value: name for name, value in contents.items()}
    loops = TopText(netlist, prefix, modules)
    counts = instance_counts(netlist, prefix, names)
    whole = ModuleText(loops.text(top), loops.structure, counts)
    return Design.from_modules(
        modules | {top: whole},
        top,
        classes=router_classes(fabric, contents),
        parts=_module_roles(netlist, prefix, modules) | dict.fromkeys(contents, Role.ROM.value),
        contents=contents,
        interface=fabric.top,
        prefix=prefix,
        ram=ram,
        instance_names=loops.instance_names,
        net_names=loops.net_names,
        instance_parts=loops.instance_parts,
        comments={prefix + name: comment for name, comment in _node_comments(netlist).items()},
        header=header_comment(fabric, command, loops.about, crossings="clk_0" in netlist.inputs),
        files=companion_files(
            fabric,
            [*modules, top],
            command=command,
            title=_fabric_title(fabric),
            flow=flow,
            templates=templates,
        ),
    )


def _module_roles(
    netlist: Netlist, prefix: str, modules: Mapping[str, ModuleText]
) -> dict[str, str]:
    """Return the role of each module, as a text for reports such as "sequencer".

    The role is the part of the fabric that a module belongs to. A module without a role of its own
    has the role of a module that contains it. Routers are left out, because reports split their
    LUTs by purpose.

    Parameters
    ----------
    netlist : Netlist
        Netlist of the fabric, which has the roles of its leaf modules.
    prefix : str
        Beginning of the names of modules in the Verilog.
    modules : dict of str to ModuleText
        All modules by name, children before their parents.
    """
    roles = {prefix + name: role for name, role in netlist.roles.items()}
    parts: dict[str, str] = {}
    for name in reversed([*modules]):  # parents come before their children
        role = roles.get(name)
        if role is Role.ROUTER:
            continue
        if role is not None:
            parts[name] = role.value
        for child in modules[name].children:
            parts.setdefault(child, parts.get(name, Role.OTHER.value))
    return parts


def _node_comments(netlist: Netlist) -> dict[str, str]:
    """Return a comment with the list of its nodes for each module that nodes have instances of.

    `netlist` has the instances, and the node of each.
    """
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
        listed = ", ".join(map(str, nodes[:MOST_LISTED].tolist()))
        more = f", .. ({len(nodes)} in all)" if len(nodes) > MOST_LISTED else ""
        comments[name] = f"Of node{'s' * (len(nodes) > 1)} {listed}{more}."
    return comments


def header_comment(
    fabric: Fabric, command: str, more: Sequence[str] = (), *, crossings: bool
) -> str:
    """Return the comment at the top of the Verilog: title, version and command.

    It also switches off some warnings of Verilator, each with the reason.

    Parameters
    ----------
    command : str
        Command line that repeats the export.
    more : sequence of str
        Further lines of the comment.
    crossings : bool
        True if nodes have clocks of their own, so that warnings about clock crossings are switched
        off, too.
    """
    lines = [
        _fabric_title(fabric),
        f"made by torusfabric {__version__}:",
        f"  {command}",
        *more,
    ]
    text = "".join(f"{line_comment(line)}\n" for line in lines)
    waived = WAIVED_WARNINGS | (WAIVED_CROSSING_WARNINGS if crossings else {})
    for name, reason in waived.items():
        text += f"/* verilator lint_off {name} */ // {reason}\n"
    return text


def _fabric_title(fabric: Fabric) -> str:
    """Return the title of a fabric: topology, collectives, width, flits and cycles, in one line."""
    program, most = fabric.program, "up to " * fabric.program.any_length
    modes = ", ".join(f"{_collective_name(m)} by {m.algorithm_names}" for m in program.modes)
    return (
        f"{program.topology.title} {modes}: "
        f"{fabric.width} bits a flit, {most}{fabric.flits} flits a message, "
        f"{most}{fabric.predicted_cycles} cycles"
    )


def _collective_name(mode: Mode) -> str:
    """Return the name of a mode's collective, with its operators or its root."""
    collective = mode.schedule.collective
    if collective.reducing:
        return f"{collective} ({', '.join(map(str, mode.operators))})"
    return f"{collective} from any root" if mode.any_root else str(collective)


#: Ports of the modules that are Verilog files of this folder; parameters set their widths.
TABLE_PORTS = {"address": Port("input", 0), "data": Port("output", 0)}

#: Macro that Icarus Verilog defines. Icarus reads X from a memory word that was never written, and
#: from an address beyond the end of the memory.
ICARUS = "__ICARUS__"


def unknown_to_zero_body(module: UnknownToZero) -> str:
    """Return the Verilog of an `UnknownToZero` for the simulator Icarus, after the ports.

    This module turns unknown bits (X) of a word into 0. Why: an unknown bit would make all bits of
    a sum unknown.
    Each bit of its output ``known`` is 1 if the bit of ``word`` is 1, and 0 if the bit is 0 or X.
    """
    bits = [f"word[{k}]" for k in range(module.width)] if module.width > 1 else ["word"]
    known = concatenate_names([f"{bit} === 1'b1" for bit in reversed(bits)])
    return f"  assign known = {known};"


def module_texts(
    netlist: Netlist, prefix: str = "", rules: Mapping[str, MemoryRule] = MappingProxyType({})
) -> dict[str, ModuleText]:
    """Write each module of a netlist except the top as Verilog, children before their parents.

    Parameters
    ----------
    prefix : str
        Beginning of the names of all modules.
    rules : dict of str to MemoryRule
        Module name without prefix -> rule for its memories. The tool chooses for other modules.

    Returns
    -------
    dict of str to ModuleText
        Module name, prefix included -> the module.
    """
    with no_inferred_names():
        own: dict[str, ModuleText] = {}
        for name, make in netlist.modules.items():
            leaf = make()
            about = (inspect.getdoc(type(leaf)) or "").partition("\n")[0]
            heading = Heading(name, prefix, about)
            ports = {port: getattr(leaf, port) for port in leaf.signature.members}
            members = leaf.signature.members.items()
            outputs = [port for port, member in members if member.flow is Out]
            rule = rules.get(name, TOOL_RULE)
            own[prefix + name] = write_module(heading, leaf, ports, outputs=outputs, rule=rule)
        inner: dict[str, ModuleText] = {}
        _add_shared(inner, prefix, [each for module in own.values() for each in module.shared])
    if any(prefix + LOOK_UP in module.children for module in own.values()):
        found = _read_module_file(prefix, LOOK_UP, TABLE_PORTS, inner=True)
        inner = {prefix + LOOK_UP: found} | inner
    if ROM in netlist.instance_counts:
        inner[prefix + ROM] = _read_module_file(prefix, ROM, {"clk": Port("input")} | TABLE_PORTS)
    return inner | own


def split_by_memory_rule(
    netlist: Netlist, rule: MemoryRule
) -> tuple[Netlist, dict[str, MemoryRule]]:
    """Return a netlist in which each module has one rule for its memories, and these rules.

    A rule with counts, such as ``block:64@20,distributed``, makes block RAMs at some nodes and LUTs
    at others. So a module gets one *variant* for each such kind of nodes: the same hardware under
    another name. Without counts, the netlist stays, and all modules have the same rule.

    Parameters
    ----------
    netlist : Netlist
        The netlist; its instances have the node numbers in which the counts of `rule` serve them.
    rule : MemoryRule
        The rule for all memories of the netlist.

    Returns
    -------
    netlist : Netlist
        The netlist with the variants.
    rules : dict of str to MemoryRule
        Name of a module -> its rule.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather"), flits=4), width=32)
    >>> netlist, rules = split_by_memory_rule(fabric.netlist, MemoryRule.parse("block@4,registers"))
    >>> {name: str(rule) for name, rule in rules.items() if name.startswith("endpoint")}
    {'endpoint_0': 'block@4,registers', 'endpoint_0_ram_1': 'registers'}
    """
    rules = dict.fromkeys(netlist.modules, rule)
    if all(entry.count is None for entry in rule.entries):
        return netlist, rules
    stored = {name: _memory_sizes(make) for name, make in netlist.modules.items()}
    arrays = [array for array in netlist.arrays if stored.get(array.module)]
    sizes = (stored[array.module] for array in arrays for _ in range(len(array)))
    each, modules, roles = rule.split_by_count(sizes), dict(netlist.modules), dict(netlist.roles)
    variants: dict[str, dict[MemoryRule, str]] = {}
    split: dict[int, list[Array]] = {}
    for array in arrays:
        here, rows = variants.setdefault(array.module, {}), dict[MemoryRule, list[int]]()
        for row in range(len(array)):
            rows.setdefault(next(each), []).append(row)
        for found in rows:
            name = here.setdefault(found, array.module + (f"_ram_{len(here)}" if here else ""))
            modules[name], roles[name] = netlist.modules[array.module], array.role
            rules[name] = found
        split[id(array)] = [
            replace(array.at_instances(np.array(at)), module=here[found])
            for found, at in rows.items()
        ]
    every = tuple(part for array in netlist.arrays for part in split.get(id(array), [array]))
    return replace(netlist, modules=modules, roles=roles, arrays=every), rules


def _memory_sizes(make: Callable[[], Leaf]) -> list[tuple[int, int]]:
    """Return the width and the depth of each RAM in the module that `make` makes."""
    return [(shape.width, shape.depth) for shape in make().memory_shapes() if shape.is_ram]


def _read_module_file(
    prefix: str, name: str, ports: dict[str, Port], *, inner: bool = False
) -> ModuleText:
    """Return the module `name`, whose text is a Verilog file of this folder.

    Parameters
    ----------
    prefix : str
        Beginning of the name of the module in the result.
    ports : dict of str to Port
        Ports of the module by name.
    inner : bool
        True if the module counts in reports as part of the modules that have instances of it.
    """
    text = Path(__file__).with_name(f"{name}.v").read_text(encoding="utf-8")
    text = text.replace(f"module {name} ", f"module {prefix}{name} ", 1)
    return ModuleText(text, Structure(ports), {}, inner=inner)


def _add_shared(texts: dict[str, ModuleText], prefix: str, shared: Sequence[SharedModule]) -> None:
    """Add the modules in `shared`, and the modules inside of these, to `texts`, children first.

    These modules, such as multiplexers, lie inside several other modules. Keys of `texts` are names
    with `prefix`.
    """
    for each in sorted(shared, key=lambda module: module.name):
        if prefix + each.name not in texts:
            text = _shared_text(each, prefix)
            _add_shared(texts, prefix, text.shared)
            texts[prefix + each.name] = text


def _alternative_bodies(shape: object) -> dict[str, str | None]:
    """Return the bodies of a module for certain devices: macro for an ``ifdef`` -> body.

    A *body* is the Verilog of a module after its ports. It is None if the plain body, which is used
    without a macro, is as good. `shape` describes a multiplexer, a sum, or an `UnknownToZero`
    (which passes a word and turns unknown bits into 0). For any other object the result is empty.
    """
    if shape is None:
        return {}
    if isinstance(shape, UnknownToZero):
        return {ICARUS: unknown_to_zero_body(shape)}
    from ..rtl.chosen_sum import ChosenSum
    from .ecp5 import ECP5, multiplexer_body, sum_body
    from .lut6 import LUT6, lut6_body
    from .one_hot import ASIC, one_hot_body

    if isinstance(shape, Multiplexer):
        bodies = multiplexer_body(shape), lut6_body(shape), one_hot_body(shape)
        return dict(zip((ECP5, LUT6, ASIC), bodies, strict=True))
    if isinstance(shape, Selector):
        return {ASIC: one_hot_body(shape)}
    return {ECP5: sum_body(shape)} if isinstance(shape, ChosenSum) else {}


def _shared_text(shared: SharedModule, prefix: str) -> ModuleText:
    """Return the Verilog of a module that lies inside of several others, such as a multiplexer.

    It has alternative bodies for some devices. `shared` describes the module, and `prefix` is the
    beginning of its name.
    """
    bodies, ports = _alternative_bodies(shared.shape), shared.make_ports()
    text = write_module(
        Heading(shared.name, prefix, shared.about, clocked=shared.clocked),
        shared.make_module(ports),
        {port.name: port for port in ports},
        instead={define: body for define, body in bodies.items() if body},
    )
    return text._replace(inner=True)
