"""Proofs of a fabric with loaded tables.

An *image* is a sequence of words that the *loader* writes into the tables. A *claim* is a statement
that is proved, a *harness* Verilog around one module with the claims about it.

The proof has two halves. Whole runs are proved of a copy of the hardware in which the tables are
constants with the contents of the image (`with_constant_tables`). Loading is proved separately, in
three steps: the words of the image write exactly these constants (`image_claim`); the loader and
the tables store any words as the format of images says (`writing_harnesses`); and the copy differs
from the fabric in tables and loader only (`equal_texts_claim`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ....contract.claims import Claim
from ....errors import InputError
from ....proof.lemmas import wiring_claim
from ....proof.report import make_refutation
from ....rtl.netlist import Role
from .writing import image_claim, loading_wires, writing_harnesses

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.solver import Harness
    from ....rtl.fabric import Fabric
    from ....rtl.netlist import Netlist
    from ....verilog.design import Design

__all__ = ["assumptions", "check_provable", "claims", "harnesses", "with_constant_tables",
           "constant_table_netlist", "image_claim", "loading_claim", "equal_texts_claim",
           "writing_harnesses"]  # fmt: skip

#: Roles of the modules that differ between the two halves.
LOADED_ROLES = (Role.TABLE, Role.LOADER)


def check_provable(fabric: Fabric) -> None:
    """Raise `InputError` for a fabric without a proof: with streams and a root chosen by runs."""
    if fabric.core.concurrent and fabric.program.any_root:
        raise InputError(
            "Streams with loaded tables are proved for a fixed root only; build the fabric "
            "without root any"
        )


def with_constant_tables(fabric: Fabric) -> Fabric:
    """Return a copy of a fabric whose tables are constants, with the contents of its image.

    The outputs by which the loader reports the loaded image are constant, too: they report this
    image. All other modules are those of the fabric.
    """
    found = copy(fabric)
    found.netlist = constant_table_netlist(fabric.netlist)
    return found


def constant_table_netlist(netlist: Netlist) -> Netlist:
    """Return a copy of a netlist whose loaded tables are constants, as if nothing could be loaded.

    The constants are the contents of the tables at power-up. The outputs by which the loader
    reports the loaded image are constant, too.
    """
    modules = {
        name: partial(cast("Any", make), written=False)
        if netlist.roles[name] in LOADED_ROLES
        else make
        for name, make in netlist.modules.items()
    }
    return replace(netlist, modules=modules)


def claims(written: Fabric, proved: Design, text: GateText) -> Iterator[Claim]:
    """Yield three claims: about the emitted Verilog, the loader's wires, and the image's words.

    A claim is a statement that is proved. Runs are proved of a copy of the fabric in which the
    tables are constants. The three claims say why this proof holds for the fabric, too.

    Parameters
    ----------
    written : Fabric
        The fabric, with tables that can be written.
    proved, text : Design, GateText
        Emitted Verilog and gates of the hardware with constant tables.
    """
    from ....verilog import emit  # here, since simulations need no Verilog

    yield equal_texts_claim(partial(emit, written), proved, [written.netlist])
    yield loading_claim(written, text)
    yield image_claim(written.tables.image)


def loading_claim(written: Fabric, text: GateText) -> Claim:
    """Return the claim that the loader is wired to all tables, each with its own number.

    `written` is the fabric. `text` is the Verilog of the copy with constant tables, read as gates;
    its wires are checked.
    """
    says = "the loader writes every table by its own number"
    return wiring_claim("loading", says, text, loading_wires(written, text))


def harnesses(written: Fabric) -> Iterator[Harness]:
    """Yield the harnesses with which a solver proves the loader of images and the tables.

    A harness is Verilog around one module, with the statements to prove about this module.
    `written` is the fabric with its tables in RAMs.
    """
    from ....verilog import emit  # here, since simulations need no Verilog

    return writing_harnesses(written.netlist, emit(written), written.digest)


def equal_texts_claim(
    write: Callable[[], Design], proved: Design, netlists: Sequence[Netlist]
) -> Claim:
    """Return the claim that two designs are equal except for tables and the loader.

    The other modules were proved in the design with constant tables; by this claim they are the
    same in the fabric.

    Parameters
    ----------
    write : callable
        Emits the design with tables that can be written.
    proved : Design
        The design with constant tables.
    netlists : sequence of Netlist
        Netlists of the design that `write` emits. They say which modules are tables and loader.
    """
    says = "all modules except tables and the loader are independent of the loaded contents"
    roles = {name: role for each in netlists for name, role in each.roles.items()}
    return Claim("text", "comparison", says, lambda: compare_modules(write(), proved, roles))


def compare_modules(written: Design, proved: Design, roles: Mapping[str, Role]) -> int:
    """Compare the Verilog of all modules except tables and loader; return the number compared.

    Parameters
    ----------
    written : Design
        Verilog of the fabric, whose tables can be written.
    proved : Design
        Verilog of the copy with constant tables.
    roles : mapping of str to Role
        Role of each module of the fabric, by its name without prefix.

    Raises
    ------
    Refuted
        If a module differs.
    """
    apart = {written.prefix + name for name, role in roles.items() if role in LOADED_ROLES}
    for name, text in written.modules.items():
        if name not in apart and proved.modules.get(name) != text:
            raise make_refutation("text", name, f"{name} must be the same whatever is loaded")
    return len(written.modules.keys() - apart)


def assumptions(fabric: Fabric) -> Iterator[str]:
    """Yield the assumptions that the proof does not check, one sentence each."""
    yield "A complete image has been loaded, and nothing is loaded during a run."
    if fabric.shared_port:
        yield "The table of blocks gives the host port the addresses of the address map."
