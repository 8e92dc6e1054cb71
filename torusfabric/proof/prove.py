"""The proof of a whole fabric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError
from ..rtl.control import plan_control
from ..rtl.fabric import Top
from ..toolchain.cache import Cache
from ..toolchain.processes import parallel
from ..verilog import emit
from .gates import read_gates
from .modules import harnesses
from .report import Counterexample, ModuleProof, Proof
from .runs import Refutation
from .solver import Harness, Solved, solve
from .whole import Whole
from .wiring import WiringFault, check_wiring

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["prove"]

#: What is not proved of any fabric.
ASSUMPTIONS = (
    "Yosys reads the text as synthesis and simulators do; Yosys, z3 and the prover are right.",
    "Synthesis, place and route, the device and its clock do what the text says.",
    "A reset lasts at least 16 clock edges.",
    "The host writes nothing between the start of a run and done.",
    "Of each word one bit is carried out in whole runs: all bits of a word are treated alike.",
    "The host port and the read tree: what the host writes and reads comes to the nodes and back.",
    "A ROM shows the row at its address one clock edge later.",
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

    Raises
    ------
    InputError
        If it is a fabric of which nothing is proved.
    MissingTool
        If Yosys or z3 is not installed.
    """
    if fabric.top is not Top.HOST or fabric.periods:
        raise InputError("Fabric to be proved must have a host port and no --periodic")
    steps = _Steps(fabric, design or emit(fabric), cache, progress)
    proofs: list[ModuleProof] = []
    wrong = None
    try:
        proofs += steps.all()
    except (Refutation, WiringFault, _Unsolved) as error:
        wrong = _counterexample(error)
    return Proof(tuple(proofs), ASSUMPTIONS, _conclusion(fabric), wrong)


class _Unsolved(Exception):
    """An assertion does not hold."""

    def __init__(self, harness: Harness, solved: Solved) -> None:
        super().__init__(harness.name)
        self.harness, self.solved = harness, solved


@dataclass
class _Steps:
    """What is done, one after the other."""

    fabric: Fabric
    design: Design
    cache: Cache | None
    progress: Progress

    def all(self) -> Iterator[ModuleProof]:
        """Everything."""
        control = plan_control(self.fabric.program)
        leaves = [self.fabric.prefix + name for name in self.fabric.netlist.modules]
        text = read_gates(self.design, leaves, self.cache)
        words = check_wiring(self.fabric, text)
        yield ModuleProof(
            "wiring", "comparison", words, 0.0,
            "each in-port is wired to the opposite out-port of the neighbour there",
        )  # fmt: skip
        yield from self._solved(harnesses(self.fabric, self.design, control))
        self.progress(0, 0, "whole runs")
        whole = Whole(self.fabric, control, self.design, text)
        yield whole.prove(self.progress, self.cache)

    def _solved(self, todo: list[Harness]) -> Iterator[ModuleProof]:
        """What is proved by induction."""
        solved = parallel(lambda harness: solve(harness, self.cache), todo)
        for number, (harness, result) in enumerate(zip(todo, solved, strict=True)):
            if result.refuted:
                raise _Unsolved(harness, result)
            self.progress(number + 1, len(todo), "routers and operators")
            yield ModuleProof(
                harness.name, "induction over time, all words, real width",
                harness.properties, result.seconds,
                "for all words and settings, at all times, each output holds the source, or the "
                "combination, that its select bits stand for",
            )  # fmt: skip


def _counterexample(error: Exception) -> Counterexample:
    """What does not hold."""
    if isinstance(error, WiringFault):
        return error.found
    if isinstance(error, Refutation):
        fault = error.fault
        return Counterexample("whole runs", fault.signal, fault.cycle, str(fault))
    assert isinstance(error, _Unsolved)
    refuted = error.solved.refuted
    assert refuted is not None
    message = f"{error.harness.name}: {refuted.name} does not hold in cycle {refuted.cycle}"
    return Counterexample(error.harness.name, refuted.name, refuted.cycle, message, refuted.wave)


def _conclusion(fabric: Fabric) -> str:
    """What follows, in words."""
    chosen = ", whichever mode, length, root and operator it is with," * fabric.program.any_length
    return (
        f"After a start at rest{chosen} the text is done after exactly the forecast number of "
        "clock edges, every node then holds what the collective owes it where the address map "
        "says, for all data, and the fabric is at rest again."
    )
