"""The proof of a whole fabric."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..rtl.fabric import Top
from ..rtl.netlist import Role
from ..rtl.placement import place
from ..toolchain import tools
from ..toolchain.cache import Cache, digest
from ..toolchain.processes import parallel
from ..verilog import emit
from .faults import Refuted, refuted
from .gates import read_gates
from .lemmas import Lemma, Subject, by_induction, lemmas
from .report import ModuleProof, Proof
from .routers import operator_modules
from .solver import Harness, solve

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
    "Nobody writes messages from the start of a run until it is done, or reads what it brings.",
)


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
    loops = [mode.loop for mode in fabric.program.modes]
    before_injection = any(
        len(readers) > 1 for loop in loops for readers in loop.sources.injections
    )
    if before_injection and any(operator.signed for operator in fabric.program.operators):
        raise InputError(
            "Operators to be proved in front of injection ports must not be signed (by --algorithm "
            "matching, which combines words behind in-ports, they are proved)"
        )
    for operator in fabric.program.operators:
        if operator.proof is None or operator.latency or not operator.associative:
            raise InputError(
                "Operator to be proved must be associative, without registers, and state its proof,"
                f" not {operator}"
            )
    for tool in ("yosys", "z3"):  # before work of a minute that would need them in the end
        tools.require(tool)
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
        roles = {fabric.prefix + name: role for name, role in fabric.netlist.roles.items()}
        closed = [name for name, role in roles.items() if role is Role.STREAM]
        units = operator_modules(fabric, design)
        text = read_gates(design, roles, cache, closed=closed, units=units)
        self._subject = Subject(fabric, design, place(fabric.program), text, cache, progress)

    def all(self) -> Iterator[ModuleProof]:
        """Everything, whole runs last."""
        subject = self._subject
        *first, whole = lemmas(subject)
        yield from map(self._known, first)
        yield from self._solved(by_induction(subject))
        yield self._known(whole)

    def _known(self, lemma: Lemma) -> ModuleProof:
        """What is proved, or was."""
        subject = self._subject
        subject.progress(0, 0, lemma.name)
        program = subject.fabric.program.digest
        key = digest("proved", lemma.name, subject.design.text, program, _own_digest(), *lemma.key)
        known = subject.cache.get(key) if subject.cache else None
        if known is None:
            began = time.monotonic()
            known = {"properties": lemma.check(), "seconds": round(time.monotonic() - began, 2)}
            if subject.cache:
                subject.cache.put(key, known)
        return ModuleProof(lemma.name, lemma.method, says=lemma.says, **known)

    def _solved(self, todo: list[Harness]) -> Iterator[ModuleProof]:
        """What is proved by induction."""
        solved = parallel(lambda harness: solve(harness, self._subject.cache), todo)
        for number, (harness, result) in enumerate(zip(todo, solved, strict=True)):
            if wrong := result.failed:
                what = "does not hold" if wrong.reached else "cannot be proved by induction"
                message = f"{harness.name}: {wrong.name} {what} (cycle {wrong.cycle})"
                raise refuted(harness.name, wrong.name, message, cycle=wrong.cycle, wave=wrong.wave)
            self._subject.progress(number + 1, len(todo), "what is proved by induction")
            yield ModuleProof(
                harness.name, "induction over time", harness.properties, result.seconds,
                harness.says,
            )  # fmt: skip


@once
def _own_digest() -> str:
    """A name for the content of the prover."""
    own = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        own.update(path.read_bytes())
    return own.hexdigest()


def _assumptions(fabric: Fabric) -> Iterator[str]:
    """What is not proved."""
    yield from ASSUMPTIONS
    if fabric.bus:
        yield "The registers behind the bus do with the host port what each access asks for."
    if fabric.top is Top.STREAM:
        yield (
            "The rows of the ROMs of loaders and unloaders are those of the address map; loaders, "
            "unloaders, commands and the control of streams are wired to each other and to ports."
        )
        yield (
            "The sequencer tells the end of each run once: to commands not before it begins "
            "another, and to nodes when what they then load and unload cannot meet it."
        )
        yield "A run that begins in the last cycle of another does what it does after a rest."


def _conclusion(fabric: Fabric) -> str:
    """What follows, in words."""
    chosen = ", whichever mode, length, root and operator it is with," * fabric.program.any_length
    where = "then holds what the collective owes it where the address map says"
    if fabric.top is Top.STREAM:
        where = "is unloaded what the collective owes it, while other runs go on"
    if fabric.streaming:
        where = "has received what the collective owes it in the cycles that the manifest says"
    return (
        f"After a start at rest{chosen} the text is done after exactly the forecast number of "
        f"clock edges, every node {where}, for all data, and the fabric is at rest again."
    )
