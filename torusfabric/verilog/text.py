"""Verilog of a fabric: every module once, and a structural top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Mode
from ..rtl.fabric import Fabric
from ..rtl.netlist import Netlist, Role
from ..toolchain.quoting import line_comment
from ..toolchain.values import of_type
from ..toolchain.version import __version__
from ..topology import IntArray, Topology
from .compact import CompactTop
from .design import Design, PlainNames
from .diagram import Diagram
from .files import files_beside
from .flows import Flow
from .flows.regions import in_rows, longest_link
from .manifest import TOP
from .memory_rule import MemoryRule
from .module_text import ModuleText
from .modules import module_texts
from .routers import router_classes
from .top import contents_of, instance_counts, top_structure, top_text

__all__ = ["emit", "header"]

#: Verilator warnings that the emitted text gives rise to, each with the reason why it is harmless.
WAIVED = {
    "DECLFILENAME": "one file holds all modules, so that it can be copied as one",
    "UNUSEDSIGNAL": "modules of all classes have the same ports, and counters an unused carry",
}

#: And that an input called abort gives rise to.
WAIVED_OF_ABORT = {"SYMRSVDWORD": "the input abort is called so in Verilog alone"}

#: Nodes that a comment lists; of more it says how many there are.
LISTED = 8


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
    netlist, prefix, top = fabric.netlist, fabric.prefix, fabric.prefix + TOP
    modules = module_texts(netlist, prefix, MemoryRule.parse(ram))
    contents = contents_of(netlist)
    names = {value: name for name, value in contents.items()}
    said = _folded(fabric.program.topology) if fold else []
    loops = CompactTop(netlist, prefix, modules) if compact else None
    text = loops.text(top) if loops else top_text(netlist, top, prefix, modules, names)
    whole = ModuleText(
        text, top_structure(netlist, compact=compact), instance_counts(netlist, prefix, names)
    )
    return Design.of(
        modules | {top: whole},
        top,
        classes=router_classes(fabric, contents),
        parts=_parts(netlist, prefix, modules) | dict.fromkeys(contents, Role.ROM.value),
        contents=contents,
        interface=fabric.top.value,
        prefix=prefix,
        instance_parts={} if compact else _instance_parts(netlist),
        comments={prefix + name: comment for name, comment in _nodes(netlist).items()},
        header=header(fabric, command, [*said, *(loops.about if loops else ())]),
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
