"""The proof of a whole fabric: its steps in order, its assumptions, and its conclusion.

Users call `prove`. Proofs of systems of several fabrics also use `check_provable` and
`collect_proofs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..toolchain import tools
from ..toolchain.cache import Cache
from ..toolchain.public import public
from ..verilog import emit
from .gates import read_gates
from .lemmas import ClaimProver, module_claims, whole_runs_claim, word_claim
from .operators import operator_assumptions
from .report import ModuleProof, Proof, Refuted
from .solver import Harness
from .units import find_operators, link_harnesses, operator_harnesses
from .whole import AllRunsProof

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["ASSUMPTIONS", "collect_proofs", "check_provable", "prove"]

#: Assumptions of the proof of every fabric.
ASSUMPTIONS = (
    "Yosys reads the Verilog as synthesis and simulators do; Yosys, z3 and this prover have no "
    "defect.",
    "Synthesis, place and route, the device and its clock behave as the Verilog says.",
    "A reset lasts at least 16 clock edges, and precedes the first start.",
    "During a run, nobody writes the memories of a core or reads words that the run stores.",
)


@public
def prove(
    fabric: Fabric,
    *,
    design: Design | None = None,
    cache: Cache | None = None,
    progress: Progress = lambda *_: None,
) -> Proof:
    """Prove that the emitted Verilog of a fabric executes its collectives correctly, for all data.

    Parameters
    ----------
    fabric : Fabric
        The fabric. An operator that states no formula for the solver is compared with its function
        on many pairs of words, which is one of the assumptions of the proof.
    design : Design, optional
        The Verilog to prove; by default the emitted Verilog of the fabric, with constant tables in
        place of loaded ones.
    cache : Cache, optional
        Store of steps that were proved before.
    progress : function of (done, total, step), optional
        Called as each step begins or ends.

    Returns
    -------
    Proof
        The steps that hold, and a counterexample if a step fails.

    Raises
    ------
    InputError
        If the fabric has loaded tables, streams, and a root that each run chooses.
    MissingTool
        If Yosys or z3 is not installed.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2)
    >>> prove(fabric).proved
    True
    """
    check_provable(fabric)
    held = fabric.tables.proofs.with_constant_tables(fabric) if fabric.tables else fabric
    proved = _prove_steps(held, design or emit(held), cache, progress, written=fabric)
    return collect_proofs(proved, _list_assumptions(fabric), _conclusion_text(fabric))


def check_provable(fabric: Fabric) -> None:
    """Raise an error, as `prove` does, for tables that cannot be proved or a missing tool."""
    if fabric.tables:
        fabric.tables.proofs.check_provable(fabric)
    for tool in ("yosys", "z3"):  # before work of a minute that would need them in the end
        tools.require(tool)


def collect_proofs(
    proofs: Iterable[ModuleProof], assumptions: Iterable[str], conclusion: str
) -> Proof:
    """Return the report of a proof, given its steps.

    Parameters
    ----------
    proofs : iterable of ModuleProof
        The steps, proved one by one as the iterable yields them. If one of them raises `Refuted`,
        the report has the steps before it and the counterexample.
    assumptions : iterable of str
        Unproved preconditions, each a sentence.
    conclusion : str
        The statement about the fabric that the steps prove together.
    """
    found: list[ModuleProof] = []
    wrong = None
    try:
        found += proofs
    except Refuted as error:
        wrong = error.counterexample
    return Proof(tuple(found), tuple(assumptions), conclusion, wrong)


def _prove_steps(
    fabric: Fabric, design: Design, cache: Cache | None, progress: Progress, *, written: Fabric
) -> Iterator[ModuleProof]:
    """Yield the proofs of all steps; the longest one, symbolic execution of all runs, is the last.

    Parameters
    ----------
    fabric : Fabric
        The fabric whose runs are proved. For a fabric with loadable tables, it is the same hardware
        with constant tables.
    design : Design
        The Verilog of `fabric`.
    cache : Cache or None
        Cache for the results of steps.
    progress : Progress
        Function to call as the proof advances.
    written : Fabric
        The fabric as emitted.
    """
    roles = {fabric.prefix + name: role for name, role in fabric.netlist.roles.items()}
    text = read_gates(design, roles, cache, operators=find_operators(fabric, design))
    steps = ClaimProver(fabric, design, cache, progress)
    whole = AllRunsProof(fabric, text)
    yield steps.prove_claim(word_claim(fabric, text))
    if fabric.tables:
        yield from map(steps.prove_claim, fabric.tables.proofs.claims(written, design, text))
    yield from map(steps.prove_claim, fabric.interface.wiring_claims(fabric, text))
    yield from map(steps.prove_claim, module_claims(fabric, text))
    yield from steps.prove_harnesses([*_induction_harnesses(fabric, design, written)])
    yield steps.prove_claim(whole_runs_claim(whole, progress))


def _induction_harnesses(fabric: Fabric, design: Design, written: Fabric) -> Iterator[Harness]:
    """Yield all harnesses of a fabric: Verilog modules with assertions.

    The solver proves them by induction over time. `design` is the Verilog of `fabric`, which has
    constant tables; `written` is the fabric as emitted, perhaps with loadable tables.
    """
    yield from operator_harnesses(fabric, design)
    yield from link_harnesses(fabric, design)
    yield from fabric.interface.proof_harnesses(fabric, design)
    if fabric.tables:
        yield from fabric.tables.proofs.harnesses(written)


def _list_assumptions(fabric: Fabric) -> Iterator[str]:
    """Yield the preconditions of a proof that are not proved, each as a sentence.

    Loadable tables and the interface of the fabric add some.
    """
    yield from ASSUMPTIONS
    if fabric.tables:
        yield from fabric.tables.proofs.assumptions(fabric)
    yield from operator_assumptions(fabric)
    if "reset_run" in fabric.netlist.single_net_widths:
        yield "No run is ended early."
    yield from fabric.interface.assumptions()


def _conclusion_text(fabric: Fabric) -> str:
    """Return the proved statement about a fabric as a sentence."""
    chosen = " with any mode, length, root and operator" * fabric.program.any_length
    begins = (
        " from its start or, if later, from the edge at which all words written before are in the "
        "memories"
    )
    begins *= fabric.hold > 0
    return (
        f"A run{chosen} that starts in an idle fabric is done after exactly the predicted number "
        f"of clock edges{begins}; every node {fabric.interface.delivers}, for all data, and "
        "the fabric is idle again."
    )
