"""The complete proof of a fabric on several boards.

`prove_boards` combines wiring, CRC, elastic buffers, barrier and agreement with whole runs on all
boards. *Known* parts are checked without the solver; *solved* parts are proved by induction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.gates import GateText, read_gates
from ....proof.lemmas import (
    STRUCTURE,
    Steps,
    of_modules,
    of_words,
    whole_runs,
    wired,
)
from ....proof.prove import ASSUMPTIONS, as_far_as_it_holds, check_provable
from ....proof.report import ModuleProof, Proof
from ....proof.solver import Harness
from ....proof.units import link_harnesses, operator_harnesses, operators_of
from ....proof.whole import Whole
from ....toolchain.cache import Cache
from ....verilog.module_text import MemoryRule
from ...host.claims import host_claims, host_runs
from ..files import board_kinds, emit_boards
from ..hardware.link_plan import CABLE
from .buffers import buffer_harness, receiver_harness
from .cables import Subject, board_wires, on_board, united
from .control import agreement_harness, barrier_harness
from .sums import check_received_sums, check_sent_sums, received_sum_harness, sent_sum_harness

if TYPE_CHECKING:
    from ....toolchain.progress import Progress
    from ....verilog.design import Design
    from ..files import BoardKind
    from ..hardware import BoardSystem, LinkPlan

__all__ = ["between_boards", "prove_boards"]


#: Statement about the wires of boards, for the report.
CABLES = (
    "transmitters, buffers, receivers, the control of the board and its sequencer are wired to "
    "each other and to ports"
)

#: Method and statement of the proof of CRCs, for the report.
SUMS = (
    "comparison of CRC bits",
    "the CRC of a packet, computed a word at a time, is that of the definition, a bit at a time",
)


def prove_boards(
    system: BoardSystem,
    *,
    design: Design | None = None,
    cache: Cache | None = None,
    progress: Progress = lambda *_: None,
) -> Proof:
    """Prove that the Verilog of all boards delivers the results of its collectives.

    Whole runs are executed symbolically on all boards together, under the assumption that links
    take exactly their latency and that sequencers start together. The proofs of elastic buffers and
    board controls justify this assumption.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    design : Design, optional
        Verilog to prove, by default emitted from `system`.
    cache : Cache, optional
        Cache of results.
    progress : function of (done, total, step), optional
        Called as each step begins or ends.

    Returns
    -------
    Proof
        Result of each part, assumptions and conclusion.
    """
    check_provable(system.fabric)
    held = system.held()
    proved = _steps(held, design or emit_boards(held), cache, progress, written=system)
    return as_far_as_it_holds(proved, _assumptions(system), _conclusion(system))


def _steps(
    system: BoardSystem,
    design: Design,
    cache: Cache | None,
    progress: Progress,
    *,
    written: BoardSystem,
) -> Iterator[ModuleProof]:
    """Yield all parts of the proof, whole runs last."""
    fabric, kinds = system.fabric, board_kinds(system, MemoryRule.parse("auto"))
    steps = Steps(fabric, design, cache, progress)
    parts = [on_board(system, kind, _text(system, kind, design, cache)) for kind in kinds]
    whole = united(system, [parts[kind] for kind in system.kind_of])
    yield steps.known(of_words(whole.fabric, whole.text))
    if fabric.tables:
        yield from map(steps.known, _of_tables(written, design, parts))
    yield from map(steps.known, _of_boards(system, kinds, parts))
    solved = [*_by_induction(system, parts, design)]
    if fabric.tables:
        solved += {harness.name: harness for harness in _writing(written)}.values()
    yield from steps.solved(solved)
    (ports,) = whole.ports
    runs = partial(host_runs, ports=ports)
    yield steps.known(whole_runs(Whole(whole.fabric, whole.text, runs), progress))


def _text(system: BoardSystem, kind: BoardKind, design: Design, cache: Cache | None) -> GateText:
    """Return the gates of a kind of board."""
    roles = {system.fabric.prefix + name: role for name, role in kind.netlist.roles.items()}
    operators = operators_of(system.fabric, design)
    names, nets = kind.text.instance_names, kind.text.net_names
    of_kind = replace(design, top=kind.top, instance_names=names, net_names=nets)
    return read_gates(of_kind, roles, cache, operators=operators)


def _of_boards(
    system: BoardSystem, kinds: Sequence[BoardKind], parts: Sequence[Subject]
) -> Iterator[Claim]:
    """Yield the claims about boards that need no solver; equal modules appear once."""
    known: set[str] = set()
    for kind, (fabric, text, ports) in zip(kinds, parts, strict=True):
        of_kind = f" of {kind.top}" * (len(kinds) > 1)
        yield wired("link ports" + of_kind, CABLES, text, board_wires(system, text))
        for lemma in (*host_claims(fabric, text, ports), *of_modules(fabric, text)):
            if lemma.method != STRUCTURE:
                yield lemma._replace(name=lemma.name + of_kind)
            elif lemma.name not in known:
                known.add(lemma.name)
                yield lemma
    yield Claim("CRC-32", *SUMS, partial(_sums, system, parts[0].text))


def _of_tables(written: BoardSystem, design: Design, parts: Sequence[Subject]) -> Iterator[Claim]:
    """Yield the claims about writable tables that need no solver."""
    proofs, kinds = written.fabric.tables.proofs, board_kinds(written, MemoryRule.parse("auto"))
    netlists = [kind.netlist for kind in kinds]
    yield proofs.same_texts(partial(emit_boards, written), design, netlists)
    for kind, part in zip(kinds, parts, strict=True):
        of_kind = f" of {kind.top}" * (len(kinds) > 1)
        claim = proofs.loading_claim(part.fabric, part.text)
        yield claim._replace(name=claim.name + of_kind)
    yield proofs.image_claim(written.fabric.tables.image)


def _writing(written: BoardSystem) -> Iterator[Harness]:
    """Yield the proofs of writable tables and their loader that need the solver."""
    fabric, design = written.fabric, emit_boards(written)
    for kind in board_kinds(written, MemoryRule.parse("auto")):
        yield from fabric.tables.proofs.writing_harnesses(kind.netlist, design, fabric.digest)


def _sums(system: BoardSystem, text: GateText) -> int:
    """Check the CRCs of transmitter and receivers; return the number of compared bits."""
    prefix, width = system.fabric.prefix, system.fabric.width
    receivers = [text.modules[f"{prefix}receiver_{each}"] for each in system.plan.latencies]
    sent = check_sent_sums(text.modules[f"{prefix}transmitter"], width)
    return sent + sum(check_received_sums(each, width) for each in receivers)


def _by_induction(
    system: BoardSystem, parts: Sequence[Subject], design: Design
) -> Iterator[Harness]:
    """Yield the proofs that need the solver, except those of writable tables."""
    yield from operator_harnesses(system.fabric, design)
    each = (harness for part in parts for harness in link_harnesses(part.fabric, design))
    yield from {harness.name: harness for harness in each}.values()
    yield from between_boards(system.plan, design)


def between_boards(plan: LinkPlan, design: Design) -> Iterator[Harness]:
    """Yield the proofs of links and of the board control, which need the solver.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    yield sent_sum_harness(plan, design)
    for latency in plan.latencies:
        yield buffer_harness(plan, latency, design)
        yield receiver_harness(plan, latency, design)
        yield received_sum_harness(plan, latency, design)
    yield barrier_harness(plan, design)
    yield agreement_harness(plan, design)


def _assumptions(system: BoardSystem) -> Iterator[str]:
    """Yield the assumptions of the proof, as sentences."""
    plan, phy = system.plan, system.phy
    yield from ASSUMPTIONS
    if system.fabric.tables:
        yield from system.fabric.tables.proofs.assumptions(system.fabric)
    more = f", beyond {phy.least:g} to {phy.most:g} of {phy.name}" * (phy.most > 0)
    yield (
        f"Oscillators are within {plan.ppm:g} ppm, and the delay of a cable is within {CABLE:g} "
        f"cycles of that of its clock{more}; a register that another clock reads while it changes "
        "shows its old or its new value."
    )
    yield (
        f"Boards start within {plan.skew:g} cycles of each other; this follows from the proved "
        "delay of a message, with the delays of cables and the phases of clocks added."
    )
    yield "CRC-32 detects every change of a word on its way."
    yield (
        "If a link falls silent, or a board is reset, while the verdict is passed on, a board "
        "may report error 9 for a good run; no board takes a bad run for a good one."
    )


def _conclusion(system: BoardSystem) -> str:
    """Return the conclusion of the proof, as a sentence."""
    chosen = ", whichever mode, length, root and operator it is with,"
    chosen *= system.fabric.program.any_length
    return (
        f"After a start of all boards at rest{chosen} each is done after exactly the forecast "
        "number of clock edges from the common start, every node then holds what the collective "
        "brings it where the address map says, for all data, or the board has an error, and the "
        "fabric is at rest again."
    )
