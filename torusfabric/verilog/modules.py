"""The text of each module of a netlist, and of those that they share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from amaranth.lib.wiring import Out

from ..rtl.combiner import ChosenSum
from ..rtl.memories import LOOK_UP
from ..rtl.modules import SharedModule, given_names
from ..rtl.multiplexer import Multiplexer
from ..rtl.netlist import ROM, Netlist
from .ecp5 import ECP5, multiplexer_body, sum_body
from .lut6 import LUT6, lut6_body
from .memory_rule import AUTO, MemoryRule
from .module_text import ModuleText, Port, Structure
from .writer import Heading, write_module

__all__ = ["BODIES", "module_texts"]

#: The ports of what lies here as a file; how wide they are is said by parameters.
TABLE = {"address": Port("input", 0), "data": Port("output", 0)}

#: The other bodies of modules that many share, by what is defined for devices with such cells.
BODIES: dict[type, dict[str, Callable[[Any], str | None]]] = {
    Multiplexer: {ECP5: multiplexer_body, LUT6: lut6_body},
    ChosenSum: {ECP5: sum_body},
}


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
