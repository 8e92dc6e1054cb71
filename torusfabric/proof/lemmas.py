"""What is proved of a fabric, by its top: lemmas that are checked one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..rtl.fabric import Top
from ..rtl.netlist import Role
from .bridges import bridge_harness
from .host import check_host
from .host_tree import check_distribution, check_tree
from .machine import WORDS
from .node_ports import check_core_ports, check_stream_ends
from .roms import check_roms
from .routers import router_harnesses
from .slices import alike
from .streams import stream_harnesses
from .whole import Whole
from .wiring import check_wiring, check_words

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import Placement
    from ..toolchain.cache import Cache
    from ..toolchain.progress import Progress
    from ..verilog.design import Design
    from .gates import GateText
    from .solver import Harness

__all__ = ["Lemma", "Subject", "by_induction", "lemmas"]

#: The ports in which words come and go.
WORD_PORTS = WORDS | {"rx", "write_data"}


@dataclass(frozen=True)
class Subject:
    """What is proved right.

    Parameters
    ----------
    fabric : Fabric
    design : Design
        Its text.
    placement : Placement
    text : GateText
        The text as gates.
    cache : Cache or None
    progress : Progress
    """

    fabric: Fabric
    design: Design
    placement: Placement
    text: GateText
    cache: Cache | None
    progress: Progress


@dataclass(frozen=True)
class Lemma:
    """Something that holds.

    Parameters
    ----------
    name : str
        The module that it is of, or what several are together.
    method, says : str
        How it is proved, and what it says, in a line.
    check : function of () -> int
        Proves it, and returns how many things are proved; raises `Refuted` if it does not hold.
    key : tuple of str
        What it depends on, besides the text and the program.
    """

    name: str
    method: str
    says: str
    check: Callable[[], int]
    key: tuple[str, ...] = ()


def lemmas(subject: Subject) -> Iterator[Lemma]:
    """What is proved of a fabric without the solver, whole runs last."""
    fabric, text = subject.fabric, subject.text
    yield Lemma(
        "wiring",
        "comparison",
        "each in-port is wired to the opposite out-port of the neighbour there, and words stay "
        "whole",
        lambda: check_wiring(fabric, text) + check_words(fabric, text),
    )
    yield from OF_TOP[fabric.top](subject)
    if fabric.prefix + "rom" in subject.design.modules:
        yield Lemma(
            "rom",
            "all addresses",
            "a cycle later it shows the row at its address",
            lambda: check_roms(text, subject.design, subject.cache),
        )
    for name, role in fabric.netlist.roles.items():
        if role in (Role.ROUTER, Role.ENDPOINT):
            yield Lemma(
                name,
                "comparison of structure",
                "all bits of words are treated alike",
                partial(alike, text.modules[fabric.prefix + name], WORD_PORTS, fabric.width),
            )
    whole = Whole(fabric, subject.placement, text)
    yield Lemma(
        "whole runs",
        "symbolic execution to the end",
        whole.says,
        partial(whole.prove, subject.progress),
        (whole.key(),),
    )


def by_induction(subject: Subject) -> list[Harness]:
    """What is proved of a fabric by the solver."""
    found = [*router_harnesses(subject.fabric, subject.design, subject.placement)]
    if subject.fabric.bus:
        name = f"{subject.fabric.prefix}bus_bridge"
        found.append(bridge_harness(subject.design, name, subject.fabric.bus))
    more = INDUCTION_OF_TOP.get(subject.fabric.top)
    return found + (more(subject) if more else [])


def _of_host(subject: Subject) -> Iterator[Lemma]:
    """The host port, and what is between it and the nodes."""
    fabric, text = subject.fabric, subject.text
    yield Lemma(
        "control tree",
        "comparison",
        "each node is given what the host port gives, or gives to its group, a cycle later",
        partial(check_distribution, fabric, text),
    )
    yield Lemma(
        "host",
        "all addresses",
        "a word that the host writes, or asks for, is where the address map says, with every edge "
        "another",
        partial(check_host, fabric, text),
    )
    yield Lemma(
        "read tree",
        "comparison",
        "the word of the node that is asked comes to the host port",
        partial(check_tree, fabric, text),
    )


def _of_core(subject: Subject) -> Iterator[Lemma]:
    """The ports of nodes."""
    yield Lemma(
        "node ports",
        "comparison",
        "the ports of each node lead to that node",
        partial(check_core_ports, subject.fabric, subject.text),
    )


def _of_streams(subject: Subject) -> Iterator[Lemma]:
    """Loaders and unloaders."""
    yield Lemma(
        "node ports",
        "comparison",
        "the loader and the unloader of each node write and read that node",
        partial(check_stream_ends, subject.fabric, subject.text),
    )


#: What is proved besides, by top.
OF_TOP: dict[Top, Callable[[Subject], Iterator[Lemma]]] = {
    Top.HOST: _of_host,
    Top.CORE: _of_core,
    Top.STREAM: _of_streams,
}

#: What is proved by induction besides, by top.
INDUCTION_OF_TOP: dict[Top, Callable[[Subject], list[Harness]]] = {
    Top.STREAM: lambda subject: stream_harnesses(subject.fabric, subject.design)
}
