"""Proofs of a fabric whose tables are loaded: what is proved, and whole runs of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...contract.claims import Claim
from ...errors import InputError
from ...proof.report import refuted
from ...rtl.netlist import Role
from ...topology import BoolArray, IntArray
from ..streams.claims.whole_runs import StreamAccess

if TYPE_CHECKING:
    from ...proof.machine import Machine
    from ...proof.messages import Run
    from ...rtl.fabric import Fabric
    from ...rtl.netlist import Netlist
    from ...verilog.design import Design

__all__ = ["RoomAccess", "assumptions", "check_provable", "held", "held_netlist", "same_claim",
           "same_texts"]  # fmt: skip

#: Modules that hold what is loaded, or load it.
APART = (Role.TABLE, Role.LOADER)


def check_provable(fabric: Fabric) -> None:
    """Raise `InputError` if nothing is proved of a fabric."""
    if fabric.core.concurrent and fabric.program.any_root:
        raise InputError("Root must be fixed for streams with loaded tables to be proved, not any")


def held(fabric: Fabric) -> Fabric:
    """Return the same hardware with tables that hold what they have been loaded with, and stay.

    All other modules are those of the fabric.
    """
    found = copy(fabric)
    found.netlist = held_netlist(fabric.netlist)
    return found


def held_netlist(netlist: Netlist) -> Netlist:
    """Return a netlist with tables that stay as they are."""
    modules = {
        name: partial(cast("Any", make), written=False) if netlist.roles[name] in APART else make
        for name, make in netlist.modules.items()
    }
    return replace(netlist, modules=modules)


def same_claim(written: Fabric, proved: Design) -> Claim:
    """Return the claim that all modules but tables and the loader are those that are written."""
    from ...verilog import emit  # here, since simulations need no text

    return same_texts(lambda: emit(written), proved, [written.netlist], written.prefix)


def same_texts(
    write: Callable[[], Design], proved: Design, netlists: Sequence[Netlist], prefix: str
) -> Claim:
    """Return the claim that modules but those of tables are those of a text that is written."""
    says = "all modules but tables and the loader are the same whatever is loaded"
    roles = {prefix + name: role for each in netlists for name, role in each.roles.items()}
    return Claim("text", "comparison", says, lambda: check_same(write(), proved, roles))


def check_same(written: Design, proved: Design, roles: Mapping[str, Role]) -> int:
    """Check that all modules but tables and the loader are those of the text that is written."""
    apart = {name for name, role in roles.items() if role in APART}
    for name, text in written.modules.items():
        if name not in apart and proved.modules.get(name) != text:
            raise refuted("text", name, f"{name} must be the same whatever is loaded")
    return len(written.modules.keys() - apart)


def assumptions(fabric: Fabric) -> Iterator[str]:
    """Yield what is not proved."""
    yield (
        "Nothing is loaded meanwhile; the loader has written the image into the tables as it says."
    )
    if fabric.shared_port:
        yield "The host port finds by the table of blocks what the address map says."


class RoomAccess(StreamAccess):
    """What a loader and an unloader give to each node, as the image of the fabric says."""

    always_last = True

    def __init__(self, fabric: Any, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._entries = np.array([place.number for place in fabric.image.places])

    def entries(self, forms: list[int]) -> IntArray:
        """Return the numbers of the entries of forms."""
        found: IntArray = self._entries[forms]
        return found

    def sends(self, run: Run) -> BoolArray:
        """Return True for each node that sends anything."""
        part = self.program.part(run.form(self.program))
        sends: BoolArray = part.groups.group >= 0
        if part.schedule.collective.single_origin:
            sends &= part.groups.position == part.schedule.collective.root
        return sends
