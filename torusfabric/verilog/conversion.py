"""The modules of a netlist as Verilog text."""

from __future__ import annotations

import inspect
from pathlib import Path

from ..rtl.memories import LOOK_UP
from ..rtl.names import given_names
from ..rtl.netlist import ROM, Netlist
from ..rtl.shared_modules import SharedModule
from .ecp5 import ECP5, ecp5_body
from .writer import ModuleText, write_module

__all__ = ["ModuleText", "module_texts"]


def module_texts(netlist: Netlist) -> dict[str, ModuleText]:
    """The text of each module of a netlist, children before their parents.

    Parameters
    ----------
    netlist : Netlist
    """
    with given_names():
        own: dict[str, ModuleText] = {}
        for name, make in netlist.modules.items():
            leaf = make()
            about = (inspect.getdoc(type(leaf)) or "").splitlines()[:1]
            ports = {port: getattr(leaf, port) for port in leaf.signature.members}
            own[name] = write_module(name, leaf, ports, about=about, kept=leaf.kept)
        shared = {each.name: each for module in own.values() for each in module.shared}
        inner = {name: _shared_text(shared[name]) for name in sorted(shared)}
    if any(LOOK_UP in module.children for module in own.values()):
        inner = {LOOK_UP: _written(LOOK_UP, ("address", "data"), inner=True)} | inner
    if any(instance.module == ROM for instance in netlist.instances):
        inner[ROM] = _written(ROM, ("clk", "address", "data"))
    return inner | own


def _written(name: str, ports: tuple[str, ...], *, inner: bool = False) -> ModuleText:
    """A module that lies here as a file."""
    text = Path(__file__).with_name(f"{name}.v").read_text(encoding="utf-8")
    return ModuleText(text, ports, {}, (), inner)


def _shared_text(shared: SharedModule) -> ModuleText:
    """A module that others share, where it pays with another body for ECP5."""
    ports = shared.ports()
    return write_module(
        shared.name,
        shared.module(ports),
        {port.name: port for port in ports},
        about=[shared.about],
        kept=shared.kept,
        clocked=shared.clocked,
        instead=(ECP5, ecp5_body(shared)),
    )._replace(inner=not shared.kept)
