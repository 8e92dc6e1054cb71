"""Verilog of a fabric: the text of every module once, and a structural top."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from amaranth.lib.wiring import Out

from ..program import Mode
from ..rtl.amaranth_private import no_inferred_names
from ..rtl.fabric import Fabric
from ..rtl.memories import LOOK_UP
from ..rtl.modules import Known, SharedModule
from ..rtl.multiplexer import Multiplexer
from ..rtl.netlist import ROM, Netlist, Role
from ..toolchain.public import public
from ..toolchain.quoting import line_comment
from ..toolchain.values import of_type
from ..toolchain.version import __version__
from ..topology import IntArray
from .design import Design, router_classes
from .manifest import TOP, files_beside
from .module_text import AUTO, MemoryRule, ModuleText, Port, Structure
from .syntax import concatenated
from .top import TopText, contents_of, instance_counts
from .writer import Heading, write_module

__all__ = ["emit", "header", "module_texts"]

#: Verilator warnings that the emitted text gives rise to, each with the reason why it is harmless.
WAIVED = {
    "DECLFILENAME": "one file holds all modules, so that it can be copied as one",
    "UNUSEDSIGNAL": "modules of all classes have the same ports, and counters an unused carry",
}

#: Warnings about clock crossings, by the reason why they may be ignored.
WAIVED_OF_CROSSINGS = {
    "SYNCASYNCNET": "the reset of one side of a crossing sets that of the other, through registers"
}

#: Nodes that a comment lists; of more it says how many there are.
LISTED = 8


@public
def emit(
    fabric: Fabric,
    *,
    command: str = "torusfabric verilog",
    ram: str = "auto",
    flow: str | None = None,
    templates: bool = False,
) -> Design:
    """The Verilog of a fabric, with all files that go with it.

    Parameters
    ----------
    command : str
        The command that makes it, for the header.
    ram : str
        What memories are made of, as of `MemoryRule.parse`.
    flow : str, optional
        ``vivado`` or ``quartus``: a project and constraints for it are among the files.
    templates : bool
        Whether an instance to be copied is among the files, and assertions to be bound.

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
    of_type("Command", command, str, "text")
    netlist, prefix, top = fabric.netlist, fabric.prefix, fabric.prefix + TOP
    modules = module_texts(netlist, prefix, MemoryRule.parse(ram))
    contents = contents_of(netlist)
    names = {value: name for name, value in contents.items()}
    loops = TopText(netlist, prefix, modules)
    counts = instance_counts(netlist, prefix, names)
    whole = ModuleText(loops.text(top), loops.structure, counts)
    return Design.of(
        modules | {top: whole},
        top,
        classes=router_classes(fabric, contents),
        parts=_parts(netlist, prefix, modules) | dict.fromkeys(contents, Role.ROM.value),
        contents=contents,
        interface=fabric.top,
        prefix=prefix,
        instance_names=loops.instance_names,
        net_names=loops.net_names,
        instance_parts=loops.instance_parts,
        comments={prefix + name: comment for name, comment in _nodes(netlist).items()},
        header=header(fabric, command, loops.about, crossings="clk_0" in netlist.inputs),
        files=files_beside(
            fabric,
            [*modules, top],
            command=command,
            title=_title(fabric),
            flow=flow,
            templates=templates,
        ),
    )


def _parts(netlist: Netlist, prefix: str, modules: Mapping[str, ModuleText]) -> dict[str, str]:
    """The part of the fabric that each module is, those inside others included; no routers."""
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


def header(fabric: Fabric, command: str, more: Sequence[str] = (), *, crossings: bool) -> str:
    """Return the comment above the text, with the command that makes it.

    Parameters
    ----------
    more : sequence of str
        Further lines.
    crossings : bool
        True if there are clock crossings.
    """
    lines = [
        _title(fabric),
        f"made by torusfabric {__version__}:",
        f"  {command}",
        *more,
    ]
    text = "".join(f"{line_comment(line)}\n" for line in lines)
    waived = WAIVED | (WAIVED_OF_CROSSINGS if crossings else {})
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


#: The ports of what lies here as a file; how wide they are is said by parameters.
TABLE = {"address": Port("input", 0), "data": Port("output", 0)}

#: What Icarus defines; it has no value for what was never written, nor beyond the end of a memory.
ICARUS = "__ICARUS__"


def known_body(module: Known) -> str:
    """The body of a module in whose output each bit has a value, without its ports."""
    bits = [f"word[{k}]" for k in range(module.width)] if module.width > 1 else ["word"]
    known = concatenated([f"{bit} === 1'b1" for bit in reversed(bits)])
    return f"  assign known = {known};"


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
    with no_inferred_names():
        own: dict[str, ModuleText] = {}
        for name, make in netlist.modules.items():
            leaf = make()
            about = (inspect.getdoc(type(leaf)) or "").partition("\n")[0]
            heading = Heading(name, prefix, about)
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


def _other_bodies(shape: object) -> dict[str, str | None]:
    """Return other bodies of a shared module, by what is defined for devices with such cells."""
    if shape is None:
        return {}
    if isinstance(shape, Known):
        return {ICARUS: known_body(shape)}
    from ..rtl.chosen_sum import ChosenSum
    from .ecp5 import ECP5, multiplexer_body, sum_body
    from .lut6 import LUT6, lut6_body

    if isinstance(shape, Multiplexer):
        return {ECP5: multiplexer_body(shape), LUT6: lut6_body(shape)}
    return {ECP5: sum_body(shape)} if isinstance(shape, ChosenSum) else {}


def _shared_text(shared: SharedModule, prefix: str) -> ModuleText:
    """A module that others share, where it pays with other bodies for some devices."""
    bodies, ports = _other_bodies(shared.shape), shared.ports()
    text = write_module(
        Heading(shared.name, prefix, shared.about, clocked=shared.clocked),
        shared.module(ports),
        {port.name: port for port in ports},
        instead={define: body for define, body in bodies.items() if body},
    )
    return text._replace(inner=True)
