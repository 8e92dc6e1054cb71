"""Fabrics whose tables are loaded: as they are once an image is there, and stays."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..rtl.netlist import Role
from ..verilog import emit
from .report import refuted

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..verilog.design import Design

__all__ = ["check_same", "loaded"]


def loaded(fabric: Fabric) -> Fabric:
    """The same hardware with tables that hold what they have been loaded with, and stay.

    All other modules are those of the fabric.
    """
    netlist = fabric.netlist
    modules = {
        name: partial(cast("Any", make), written=False)
        if netlist.roles[name] in (Role.TABLE, Role.LOADER)
        else make
        for name, make in netlist.modules.items()
    }
    found = copy(fabric)
    found.netlist = replace(netlist, modules=modules)
    return found


def check_same(fabric: Fabric, proved: Design) -> int:
    """Check that all modules but tables and the loader are those of the fabric that is written."""
    written, roles = emit(fabric).modules, fabric.netlist.roles
    apart = {fabric.prefix + name for name, role in roles.items()
             if role in (Role.TABLE, Role.LOADER)}  # fmt: skip
    for name, text in written.items():
        if name not in apart and proved.modules.get(name) != text:
            raise refuted("text", name, f"{name} must be the same whatever is loaded")
    return len(written.keys() - apart)
