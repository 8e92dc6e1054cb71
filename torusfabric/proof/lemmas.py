"""What is proved of a fabric step by step, whatever lies between its nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..rtl.fabric import Top
from ..rtl.netlist import Role
from ..toolchain.cache import Cache, digest, source_digest
from ..toolchain.processes import parallel
from .alike import alike
from .gates import WORDS, GateText
from .host import check_host
from .report import ModuleProof, refuted
from .roms import check_roms
from .solver import Harness, solve
from .whole import Whole
from .wiring import Check, check_core_ports, check_distribution, check_stream_ends, check_tree

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["STRUCTURE", "Lemma", "Steps", "of_modules", "of_top", "whole_runs"]

#: The rooms whose text says what the words and numbers are that a text is compared with.
ROOMS = ("collective", "contract", "program", "proof", "rtl", "schedule", "topology", "verilog")

#: How it is proved of a module that all bits of words are treated alike.
STRUCTURE = "comparison of structure"


class Lemma(NamedTuple):
    """Something that holds: how it is proved, and what it says, in a line.

    `check` returns how many things are proved, or raises `Refuted`.
    """

    name: str
    method: str
    says: str
    check: Callable[[], int]


#: What is proved besides of the wires of a fabric, by its top.
OF_TOP: dict[Top, tuple[tuple[str, str, str, Check], ...]] = {
    Top.HOST: (
        ("control tree", "comparison",
         "each node is given what the host port gives, or gives to its group, a cycle later",
         check_distribution),
        ("host", "all addresses",
         "a word that the host writes, or asks for, is where the address map says, with every edge "
         "another", check_host),
        ("read tree", "comparison",
         "the word of the node that is asked comes to the host port", check_tree),
    ),
    Top.CORE: (
        ("node ports", "comparison",
         "the ports of each node lead to that node", check_core_ports),
    ),
    Top.STREAM: (
        ("node ports", "comparison",
         "the loader and the unloader of each node write and read that node", check_stream_ends),
    ),
}  # fmt: skip


def of_top(fabric: Fabric, text: GateText) -> Iterator[Lemma]:
    """What is proved of the wires of a top, and of what it has once."""
    for name, method, says, check in OF_TOP[fabric.top]:
        if fabric.frame and check is check_host:  # which finds words by what is loaded
            continue
        yield Lemma(name, method, says, partial(check, fabric, text))


def of_modules(
    fabric: Fabric, text: GateText, design: Design, cache: Cache | None
) -> Iterator[Lemma]:
    """What is proved of ROMs, and of the bits of words in routers and endpoints."""
    if design.rom in design.modules:
        yield Lemma("rom", "all addresses", "a cycle later it shows the row at its address",
                    partial(check_roms, text, design, cache))  # fmt: skip
    for name, role in fabric.netlist.roles.items():
        if role in (Role.ROUTER, Role.ENDPOINT):
            module = text.modules[fabric.prefix + name]
            yield Lemma(name, STRUCTURE, "all bits of words are treated alike",
                        partial(alike, module, WORDS, fabric.width))  # fmt: skip


def whole_runs(whole: Whole, progress: Progress) -> Lemma:
    """That all runs end as they should."""
    return Lemma("whole runs", "symbolic execution to the end", whole.says,
                 partial(whole.prove, progress))  # fmt: skip


class Steps:
    """What is done, one after the other; what was proved before is not done again."""

    def __init__(
        self, fabric: Fabric, design: Design, cache: Cache | None, progress: Progress
    ) -> None:
        self._fabric, self._design, self._cache = fabric, design, cache
        self._progress = progress

    def known(self, lemma: Lemma) -> ModuleProof:
        """What is proved, or was."""
        self._progress(0, 0, lemma.name)
        program = self._fabric.program
        # What nodes must have, and where it lies, follows from the schedules.
        schedules = [form.schedule.digest for form in program.forms]
        key = digest("proved", lemma.name, self._design.text, program.digest, schedules,
                     source_digest(*ROOMS))  # fmt: skip
        known = self._cache.get(key) if self._cache else None
        if known is None:
            began = time.monotonic()
            known = {"properties": lemma.check(), "seconds": round(time.monotonic() - began, 2)}
            if self._cache:
                self._cache.put(key, known)
        return ModuleProof(lemma.name, lemma.method, says=lemma.says, **known)

    def solved(self, todo: Sequence[Harness]) -> Iterator[ModuleProof]:
        """What is proved by induction."""
        solved = parallel(lambda harness: solve(harness, self._cache), todo)
        for number, (harness, result) in enumerate(zip(todo, solved, strict=True)):
            if wrong := result.failed:
                what = "does not hold" if wrong.reached else "cannot be proved by induction"
                message = f"{harness.name}: {wrong.name} {what} (cycle {wrong.cycle})"
                raise refuted(harness.name, wrong.name, message, cycle=wrong.cycle, wave=wrong.wave)
            self._progress(number + 1, len(todo), "what is proved by induction")
            yield ModuleProof(
                harness.name, "induction over time", harness.properties, result.seconds,
                harness.says,
            )  # fmt: skip
