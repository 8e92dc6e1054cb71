"""Proofs of a fabric with loaded tables.

The proof has two halves. Whole runs are proved of hardware whose tables hold the image as constants
(`held`). Loading is proved apart: `image_claim` checks that the words of the image write the
contents of these tables, and the harnesses of `writing` prove the loader and the tables for any
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ....contract.claims import Claim
from ....errors import InputError
from ....proof.lemmas import wired
from ....proof.report import refuted
from ....rtl.netlist import Role
from .writing import image_claim, loading_wires, writing_harnesses

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.solver import Harness
    from ....rtl.fabric import Fabric
    from ....rtl.netlist import Netlist
    from ....verilog.design import Design

__all__ = ["assumptions", "check_provable", "claims", "harnesses", "held", "held_netlist",
           "image_claim", "loading_claim", "same_texts", "writing_harnesses"]  # fmt: skip

#: Roles of the modules that differ between the two halves.
APART = (Role.TABLE, Role.LOADER)


def check_provable(fabric: Fabric) -> None:
    """Raise `InputError` if a fabric cannot be proved."""
    if fabric.core.concurrent and fabric.program.any_root:
        raise InputError(
            "Streams with loaded tables are proved for a fixed root only; build the fabric "
            "without root any"
        )


def held(fabric: Fabric) -> Fabric:
    """Return a copy of a fabric in which the tables and the loaded state are constants.

    All other modules are those of the fabric.
    """
    found = copy(fabric)
    found.netlist = held_netlist(fabric.netlist)
    return found


def held_netlist(netlist: Netlist) -> Netlist:
    """Return a netlist in which the tables and the loaded state are constants."""
    modules = {
        name: partial(cast("Any", make), written=False) if netlist.roles[name] in APART else make
        for name, make in netlist.modules.items()
    }
    return replace(netlist, modules=modules)


def claims(written: Fabric, proved: Design, text: GateText) -> Iterator[Claim]:
    """Yield the claims about the emitted Verilog, the wires of loading, and the words of the image.

    Parameters
    ----------
    written : Fabric
        The fabric, with tables that can be written.
    proved, text : Design, GateText
        Emitted Verilog and gates of the hardware with constant tables.
    """
    from ....verilog import emit  # here, since simulations need no text

    yield same_texts(partial(emit, written), proved, [written.netlist])
    yield loading_claim(written, text)
    yield image_claim(written.tables.image)


def loading_claim(written: Fabric, text: GateText) -> Claim:
    """Return the claim about the wires from the loader to the tables."""
    says = "the loader writes every table by its own number"
    return wired("loading", says, text, loading_wires(written, text))


def harnesses(written: Fabric) -> Iterator[Harness]:
    """Yield the proof harnesses of the loader and of the tables."""
    from ....verilog import emit  # here, since simulations need no text

    return writing_harnesses(written.netlist, emit(written), written.digest)


def same_texts(write: Callable[[], Design], proved: Design, netlists: Sequence[Netlist]) -> Claim:
    """Return the claim that both designs are equal except for tables and the loader.

    Parameters
    ----------
    write : callable
        Emits the design with tables that can be written.
    proved : Design
        The design with constant tables.
    netlists : sequence of Netlist
        Netlists of the first, which give the roles of modules.
    """
    says = "all modules except tables and the loader are independent of the loaded contents"
    roles = {name: role for each in netlists for name, role in each.roles.items()}
    return Claim("text", "comparison", says, lambda: check_same(write(), proved, roles))


def check_same(written: Design, proved: Design, roles: Mapping[str, Role]) -> int:
    """Compare all modules except tables and the loader, and return their number."""
    apart = {written.prefix + name for name, role in roles.items() if role in APART}
    for name, text in written.modules.items():
        if name not in apart and proved.modules.get(name) != text:
            raise refuted("text", name, f"{name} must be the same whatever is loaded")
    return len(written.modules.keys() - apart)


def assumptions(fabric: Fabric) -> Iterator[str]:
    """Yield the assumptions that the proof does not check, one sentence each."""
    yield "A complete image has been loaded, and nothing is loaded during a run."
    if fabric.shared_port:
        yield "The table of blocks gives the host port the addresses of the address map."
