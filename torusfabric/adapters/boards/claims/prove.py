"""The complete proof of a fabric on several boards.

`prove_boards` combines the proofs of wiring, CRCs, elastic buffers, barrier and agreement with
whole runs on all boards. *Claims* are checked without a solver. *Harnesses* are proved by a solver,
by induction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.gates import GateText, read_gates
from ....proof.lemmas import (
    STRUCTURE_METHOD,
    ClaimProver,
    module_claims,
    whole_runs_claim,
    wiring_claim,
    word_claim,
)
from ....proof.operators import operator_assumptions
from ....proof.prove import ASSUMPTIONS, check_provable, collect_proofs
from ....proof.report import ModuleProof, Proof
from ....proof.solver import Harness
from ....proof.units import find_operators, link_harnesses, operator_harnesses
from ....proof.whole import AllRunsProof
from ....toolchain.cache import Cache
from ....verilog.module_text import MemoryRule
from ...host.claims import host_claims, host_port_runs
from ..files import board_kinds, emit_boards
from ..hardware.link_plan import CABLE_CYCLES
from .buffers import buffer_harness, receiver_harness
from .cables import ProofSubject, board_subject, board_wires, join_boards
from .control import agreement_harness, barrier_harness
from .crcs import check_received_crc, check_sent_crc, received_crc_harness, sent_crc_harness
from .narrow import narrow_cable_harnesses

if TYPE_CHECKING:
    from ....toolchain.progress import Progress
    from ....verilog.design import Design
    from ..files import BoardKind
    from ..hardware import BoardSystem, LinkPlan

__all__ = ["board_link_harnesses", "prove_boards"]


#: Statement about the wires of boards, for the report.
WIRES_CLAIM = (
    "transmitters, buffers, receivers, the control of the board and its sequencer are wired to "
    "each other and to ports"
)

#: Method and statement of the proof of CRCs, for the report.
CRC_CLAIM = (
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
    held = system.with_constant_tables()
    proved = _prove_steps(held, design or emit_boards(held), cache, progress, written=system)
    return collect_proofs(proved, _list_assumptions(system), _conclusion_text(system))


def _prove_steps(
    system: BoardSystem,
    design: Design,
    cache: Cache | None,
    progress: Progress,
    *,
    written: BoardSystem,
) -> Iterator[ModuleProof]:
    """Prove one part after another, and yield their results, that of whole runs last.

    Most parts are about a copy of the fabric in which loaded tables are constants: `system`, with
    its Verilog `design`. `written` is the fabric itself. `cache` keeps results for later proofs.
    `progress` is called as each step begins or ends.
    """
    fabric, kinds = system.fabric, board_kinds(system, MemoryRule.parse("auto"))
    steps = ClaimProver(fabric, design, cache, progress)
    parts = [
        board_subject(system, kind, _read_kind_gates(system, kind, design, cache)) for kind in kinds
    ]
    whole = join_boards(system, [parts[kind] for kind in system.kinds_of_boards])
    yield steps.prove_claim(word_claim(whole.fabric, whole.text))
    if fabric.tables:
        yield from map(steps.prove_claim, _table_claims(written, design, parts))
    yield from map(steps.prove_claim, _board_claims(system, kinds, parts))
    solved = [*_induction_harnesses(system, parts, design)]
    if fabric.tables:
        solved += {harness.name: harness for harness in _writing_harnesses(written)}.values()
    yield from steps.prove_harnesses(solved)
    (ports,) = whole.ports
    runs = partial(host_port_runs, ports=ports)
    yield steps.prove_claim(
        whole_runs_claim(AllRunsProof(whole.fabric, whole.text, runs), progress)
    )


def _read_kind_gates(
    system: BoardSystem, kind: BoardKind, design: Design, cache: Cache | None
) -> GateText:
    """Read the Verilog of a kind of board, which boards with equal netlists share, as gates.

    `system` is the fabric on all boards, and `design` its emitted Verilog. `cache`, if given, keeps
    the results of Yosys for later proofs.
    """
    roles = {system.fabric.prefix + name: role for name, role in kind.netlist.roles.items()}
    operators = find_operators(system.fabric, design)
    names, nets = kind.text.instance_names, kind.text.net_names
    of_kind = replace(design, top=kind.top, instance_names=names, net_names=nets)
    return read_gates(of_kind, roles, cache, operators=operators)


def _board_claims(
    system: BoardSystem, kinds: Sequence[BoardKind], parts: Sequence[ProofSubject]
) -> Iterator[Claim]:
    """Yield the claims (statements to prove without a solver) about each kind of board.

    They concern wires, the host port, and modules such as routers. A claim about a module that
    several kinds share appears once. `system` is the fabric on all boards. `parts` has the gates of
    each kind.
    """
    known: set[str] = set()
    for kind, (fabric, text, ports) in zip(kinds, parts, strict=True):
        of_kind = f" of {kind.top}" * (len(kinds) > 1)
        yield wiring_claim(
            "link ports" + of_kind, WIRES_CLAIM, text, board_wires(system, kind.boards[0], text)
        )
        for lemma in (*host_claims(fabric, text, ports), *module_claims(fabric, text)):
            if lemma.method != STRUCTURE_METHOD:
                yield lemma._replace(name=lemma.name + of_kind)
            elif lemma.name not in known:
                known.add(lemma.name)
                yield lemma
    yield Claim("CRC-32", *CRC_CLAIM, partial(_check_crcs, system, parts[0].text))


def _table_claims(
    written: BoardSystem, design: Design, parts: Sequence[ProofSubject]
) -> Iterator[Claim]:
    """Yield the claims that loading an image makes the tables equal to those in the other proofs.

    The other proofs are about a copy with constant tables. `written` is the fabric with its tables
    in RAMs. `design` is the Verilog of the copy with constant tables, and `parts` has its gates,
    for each kind of board.
    """
    proofs, kinds = written.fabric.tables.proofs, board_kinds(written, MemoryRule.parse("auto"))
    netlists = [kind.netlist for kind in kinds]
    yield proofs.equal_texts_claim(partial(emit_boards, written), design, netlists)
    for kind, part in zip(kinds, parts, strict=True):
        of_kind = f" of {kind.top}" * (len(kinds) > 1)
        claim = proofs.loading_claim(part.fabric, part.text)
        yield claim._replace(name=claim.name + of_kind)
    yield proofs.image_claim(written.fabric.tables.image)


def _writing_harnesses(written: BoardSystem) -> Iterator[Harness]:
    """Yield the proofs by induction about writable tables and the loader of images.

    Each is a harness: Verilog around a module, with the claims about it. `written` is the fabric
    with its tables in RAMs, on all boards.
    """
    fabric, design = written.fabric, emit_boards(written)
    for kind in board_kinds(written, MemoryRule.parse("auto")):
        yield from fabric.tables.proofs.writing_harnesses(kind.netlist, design, fabric.digest)


def _check_crcs(system: BoardSystem, text: GateText) -> int:
    """Check the CRCs of transmitter and receivers; return the number of compared bits.

    `system` is the fabric on all boards, and `text` the Verilog of a board, read as gates.
    """
    prefix, width = system.fabric.prefix, system.link_plan.width
    receivers = [text.modules[f"{prefix}receiver_{each}"] for each in system.link_plan.latencies]
    sent = check_sent_crc(text.modules[f"{prefix}transmitter"], width)
    return sent + sum(check_received_crc(each, width) for each in receivers)


def _induction_harnesses(
    system: BoardSystem, parts: Sequence[ProofSubject], design: Design
) -> Iterator[Harness]:
    """Yield the proofs by induction: about operators, links, and the board control.

    Each is a harness: Verilog around a module, with the claims about it. The proofs about writable
    tables are not included; see `_writing_harnesses`. `system` is the fabric on all boards, and
    `design` its emitted Verilog. `parts` has the gates of each kind of board.
    """
    yield from operator_harnesses(system.fabric, design)
    each = (harness for part in parts for harness in link_harnesses(part.fabric, design))
    yield from {harness.name: harness for harness in each}.values()
    yield from board_link_harnesses(system.link_plan, design)


def board_link_harnesses(plan: LinkPlan, design: Design) -> Iterator[Harness]:
    """Yield the proofs by induction about the links between boards and the board control.

    Each is a harness: Verilog around a module, with the claims about it.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    yield sent_crc_harness(plan, design)
    yield from narrow_cable_harnesses(plan, design)
    for latency in plan.latencies:
        yield buffer_harness(plan, latency, design)
        yield receiver_harness(plan, latency, design)
        yield received_crc_harness(plan, latency, design)
    yield barrier_harness(plan, design)
    yield agreement_harness(plan, design)


def _list_assumptions(system: BoardSystem) -> Iterator[str]:
    """Yield the assumptions of the proof, as sentences. `system` is the fabric on all boards."""
    plan, phy = system.link_plan, system.phy
    yield from ASSUMPTIONS
    if system.fabric.tables:
        yield from system.fabric.tables.proofs.assumptions(system.fabric)
    yield from operator_assumptions(system.fabric)
    more = f", beyond {phy.least:g} to {phy.most:g} of {phy.name}" * (phy.most > 0)
    yield (
        f"Oscillators are within {plan.ppm:g} ppm, and the delay of a cable is within "
        f"{CABLE_CYCLES:g} "
        f"cycles of that of its clock{more}; a register that another clock "
        "reads while it changes "
        "shows its old or its new value."
    )
    yield (
        f"Boards start within {plan.start_skew:g} cycles of each other; this follows from the "
        "proved "
        "delay of a message, with the delays of cables and the phases of clocks added."
    )
    yield "CRC-32 detects every change of a word on its way."
    yield (
        "If a link falls silent, or a board is reset, while the verdict is passed on, a board "
        "may report error 9 for a good run; no board takes a bad run for a good one."
    )


def _conclusion_text(system: BoardSystem) -> str:
    """Return the conclusion of the proof, as a sentence. `system` is the fabric on all boards."""
    chosen = " with any mode, length, root and operator"
    chosen *= system.fabric.program.any_length
    return (
        f"If a run{chosen} starts on idle boards, each board is done after exactly the predicted "
        "number of clock edges from the common start. Then every node holds what the collective "
        "brings it where the address map says, for all data, or the board has an error. The "
        "fabric is idle again."
    )
