"""The proof of a whole fabric."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..rtl.control import plan_control
from ..rtl.fabric import Top
from ..rtl.netlist import Role
from ..toolchain.cache import Cache, digest
from ..toolchain.processes import parallel
from ..verilog import emit
from .faults import Refuted, refuted
from .gates import read_gates
from .host import check_distribution, check_host, check_tree
from .machine import WORDS
from .modules import harnesses
from .report import ModuleProof, Proof
from .roms import check_roms
from .slices import alike
from .solver import Harness, solve
from .whole import Whole
from .wiring import check_wiring

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["prove"]

#: What is not proved of any fabric.
ASSUMPTIONS = (
    "Yosys reads the text as synthesis and simulators do; Yosys, z3 and this prover are right.",
    "Synthesis, place and route, the device and its clock do what the text says.",
    "A reset lasts at least 16 clock edges, and comes before the first start.",
    "The host writes nothing from the start of a run until it is done, and reads nothing that it "
    "wants to know.",
)

#: The ports in which words come and go.
WORD_PORTS = WORDS | {"rx", "write_data"}


def prove(
    fabric: Fabric,
    *,
    design: Design | None = None,
    cache: Cache | None = None,
    progress: Progress = lambda *_: None,
) -> Proof:
    """Prove that the text of a fabric does what its collectives owe, for all data.

    Parameters
    ----------
    fabric : Fabric
    design : Design, optional
        Its text; by default as it is emitted.
    cache : Cache, optional
        What was proved before.
    progress : function of (done, total, what)

    Returns
    -------
    Proof

    Raises
    ------
    InputError
        If it is a fabric of which nothing is proved.
    MissingTool
        If Yosys or z3 is not installed.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2)
    >>> prove(fabric).proved
    True
    """
    if fabric.top is not Top.HOST or fabric.periods:
        raise InputError("Fabric to be proved must have a host port and not be periodic")
    if any(len(readers) > 1 for readers in fabric.program.loop.injections):
        raise InputError(
            "Reduction to be proved must combine words behind in-ports (as --algorithm matching "
            "does), not in front of injection ports"
        )
    proofs: list[ModuleProof] = []
    wrong = None
    try:
        proofs += _Steps(fabric, design or emit(fabric), cache, progress).all()
    except Refuted as error:
        wrong = error.counterexample
    return Proof(tuple(proofs), tuple(_assumptions(fabric)), _conclusion(fabric), wrong)


class _Steps:
    """What is done, one after the other; what was proved before is not done again."""

    def __init__(
        self, fabric: Fabric, design: Design, cache: Cache | None, progress: Progress
    ) -> None:
        self._fabric, self._design = fabric, design
        self._cache, self._progress = cache, progress
        self._control = plan_control(fabric.program)
        leaves = [fabric.prefix + name for name in fabric.netlist.modules]
        self._text = read_gates(design, leaves, cache)

    def all(self) -> Iterator[ModuleProof]:
        """Everything."""
        fabric, text = self._fabric, self._text
        yield self._known(
            "wiring", "comparison", lambda: check_wiring(fabric, text)
            + check_distribution(fabric, text),
            "each in-port is wired to the opposite out-port of the neighbour there, and each node "
            "to the host port",
        )  # fmt: skip
        yield self._known(
            "host", "all addresses", lambda: check_host(fabric, text),
            "a word that the host writes, or asks for, is where the address map says, with every "
            "edge another",
        )  # fmt: skip
        yield self._known(
            "read tree", "comparison", lambda: check_tree(fabric, text),
            "the word of the node that is asked comes to the host port",
        )  # fmt: skip
        if fabric.prefix + "rom" in self._design.modules:
            yield self._known(
                "rom", "all addresses", lambda: check_roms(text, self._design, self._cache),
                "a cycle later it shows the row at its address",
            )  # fmt: skip
        yield from self._alike()
        yield from self._solved(harnesses(fabric, self._design, self._control))
        whole = Whole(fabric, self._control, text)
        yield self._known(
            "whole runs", "symbolic execution to the end", lambda: whole.prove(self._progress),
            whole.says, whole.key(),
        )  # fmt: skip

    def _known(
        self, name: str, method: str, check: Callable[[], int], says: str, *key: str
    ) -> ModuleProof:
        """What is proved, or was."""
        self._progress(0, 0, name)
        place = digest("proved", name, self._design.text, self._of_program, _own_digest(), key)
        known = self._cache.get(place) if self._cache else None
        if known is None:
            began = time.monotonic()
            known = {"properties": check(), "seconds": round(time.monotonic() - began, 2)}
            if self._cache:
                self._cache.put(place, known)
        return ModuleProof(name, method, says=says, **known)

    @property
    def _of_program(self) -> str:
        """The program, by its content."""
        return self._fabric.program.digest

    def _alike(self) -> Iterator[ModuleProof]:
        """That all bits of words are treated alike, so that one of them stands for all."""
        fabric = self._fabric
        for name, role in fabric.netlist.roles.items():
            if role in (Role.ROUTER, Role.ENDPOINT):
                module = self._text.modules[fabric.prefix + name]
                check = lambda module=module: alike(module, WORD_PORTS, fabric.width)
                yield self._known(
                    name, "comparison of structure", check,
                    "all bits of words are treated alike",
                )  # fmt: skip

    def _solved(self, todo: list[Harness]) -> Iterator[ModuleProof]:
        """What is proved by induction."""
        solved = parallel(lambda harness: solve(harness, self._cache), todo)
        for number, (harness, result) in enumerate(zip(todo, solved, strict=True)):
            if wrong := result.failed:
                message = f"{harness.name}: {wrong.name} does not hold (cycle {wrong.cycle})"
                raise refuted(harness.name, wrong.name, message, cycle=wrong.cycle, wave=wrong.wave)
            self._progress(number + 1, len(todo), "routers and operators")
            yield ModuleProof(
                harness.name, "induction over time", harness.properties, result.seconds,
                "for all words and settings, at all times, each output holds the source, or the "
                "combination, that its select bits stand for",
            )  # fmt: skip


@once
def _own_digest() -> str:
    """A name for the content of the prover."""
    own = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        own.update(path.read_bytes())
    return own.hexdigest()


def _assumptions(fabric: Fabric) -> Iterator[str]:
    """What is not proved."""
    yield from ASSUMPTIONS
    if fabric.bus:
        yield "The bus does with the host port what its master asks for."


def _conclusion(fabric: Fabric) -> str:
    """What follows, in words."""
    chosen = ", whichever mode, length, root and operator it is with," * fabric.program.any_length
    return (
        f"After a start at rest{chosen} the text is done after exactly the forecast number of "
        "clock edges, every node then holds what the collective owes it where the address map "
        "says, for all data, and the fabric is at rest again."
    )
