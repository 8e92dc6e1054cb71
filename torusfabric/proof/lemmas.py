"""The claims about a fabric, and `ClaimProver`, which proves claims one after another with a cache.

A *claim* is a statement with a function that checks it by comparison or symbolic execution. (A
*harness*, in contrast, is proved by an SMT solver; see `solver`.) The claims of this module are
made for every interface. Claims about buses and node ports come from `torusfabric.adapters`.

A *class* is here a set of bit positions of a word, at which the operators treat bits alike; see
`units.bit_classes`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..contract.claims import Claim
from ..rtl.netlist import Role
from ..toolchain.cache import Cache, digest, source_digest
from ..toolchain.processes import map_in_threads
from .alike import check_alike
from .gates import WORDS, GateModule, GateText
from .operators import operator_claims
from .report import ModuleProof, Refuted
from .roms import check_roms
from .routers import check_routers
from .slow_links import check_slow_links
from .solver import Harness, prove_harness
from .units import bit_classes
from .whole import AllRunsProof
from .wiring import Wires, check_arrivals, check_words, compare_wires

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["STRUCTURE_METHOD", "ClaimProver", "module_claims", "word_claim",
           "whole_runs_claim", "wiring_claim"]  # fmt: skip

#: Packages whose code defines the expected words and wires; a change there invalidates the cache.
ROOMS = (
    "adapters",
    "collective",
    "contract",
    "program",
    "proof",
    "rtl",
    "schedule",
    "topology",
    "verilog",
)

#: Method of the claim that a module treats all bits of a word alike.
STRUCTURE_METHOD = "comparison of structure"


def wiring_claim(name: str, says: str, text: GateText, wires: Wires) -> Claim:
    """Return the claim that wires in the Verilog are as planned.

    Parameters
    ----------
    name : str
        Name of the claim.
    says : str
        The statement, in one line.
    text : GateText
        The Verilog as gates.
    wires : Wires
        For each port of some instances, the bits that are wired to it in the Verilog and those of
        the plan, from `planned_wires`.
    """
    return Claim(name, "comparison", says, partial(compare_wires, text, wires, name))


def word_claim(fabric: Fabric, text: GateText) -> Claim:
    """Return the claim that wires keep the bits of words together, and lead to the right in-ports.

    It is checked by `check_words` and `check_arrivals`. `text` is the Verilog as gates.
    """
    says = (
        "each in-port receives the word that its neighbour sends by the opposite out-port, and "
        "the bits of a word stay together and in order on every wire"
    )
    check = lambda: check_words(text, fabric.width) + check_arrivals(fabric, text)
    return Claim("wiring", "comparison", says, check)


def module_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claims about the modules of a fabric.

    They say that ROMs have the planned contents (`check_roms`), that slow links carry few enough
    flits (`check_slow_links`), that the multiplexers of routers
    pass the selected words (`check_routers`), that each module treats all bits of a word alike
    (`check_alike`), and that operators without a formula compute their functions. `text` is the
    Verilog as gates.
    """
    says = "every ROM holds the contents of the netlist in every row"
    yield Claim("rom", "comparison", says, partial(check_roms, fabric, text))
    if fabric.program.topology.spacing_multiple > 1:
        says = "a link with a rate of 1/n has a flit at most every n cycles, in all runs"
        yield Claim("slow links", "comparison", says, partial(check_slow_links, fabric.program))
    says = "each out-port sends the word that its select bits choose, or keeps its last word"
    yield Claim("selections", "all selections", says, partial(check_routers, fabric, text))
    for name, role in fabric.netlist.roles.items():
        if role in (Role.ROUTER, Role.COMBINER, Role.ENDPOINT, Role.OUTLET):
            module = text.modules[fabric.prefix + name]
            yield Claim(name, STRUCTURE_METHOD, "the module treats all bits of a word alike",
                        partial(_check_bits_alike, module, fabric))  # fmt: skip
    yield from operator_claims(fabric, text)


def _check_bits_alike(module: GateModule, fabric: Fabric) -> int:
    """Check that the gates of a module are the same for all bits of a class.

    A class is a set of bit positions at which the identity word of every operator has equal bits.
    The result is the number of comparisons.
    """
    classes = bit_classes(fabric)
    return sum(check_alike(module, WORDS, fabric.width, positions) for positions in classes)


def whole_runs_claim(whole: AllRunsProof, progress: Progress) -> Claim:
    """Return the claim that each run ends in the predicted cycle with the expected words.

    `whole` checks the claim, and calls `progress` after each batch of runs. The cycle in which a
    run must end is computed from the program.
    """
    return Claim("whole runs", "symbolic execution to the end", whole.statement,
                 partial(whole.prove, progress))  # fmt: skip


class ClaimProver:
    """Prover of the claims and harnesses of a fabric, with a cache of earlier proofs.

    A claim is a statement with a function that checks it. A harness is a Verilog module with
    assertions, which an SMT solver proves.

    Parameters
    ----------
    progress : function of (done, total, step)
        Called as each claim or harness begins or ends.
    """

    def __init__(
        self, fabric: Fabric, design: Design, cache: Cache | None, progress: Progress
    ) -> None:
        self._fabric, self._design, self._cache = fabric, design, cache
        self._progress = progress

    def prove_claim(self, lemma: Claim) -> ModuleProof:
        """Prove the claim `lemma`, or take its proof from the cache; returns the proof."""
        self._progress(0, 0, lemma.name)
        program = self._fabric.program
        # The expected words and their addresses depend on the schedules, so these are in the key.
        schedules = [form.schedule.digest for form in program.forms]
        key = digest("proved", lemma.name, self._design.text, program.digest, schedules,
                     source_digest(*ROOMS))  # fmt: skip
        known = self._cache.get(key) if self._cache else None
        if known is None:
            began = time.monotonic()
            known = {"properties": lemma.check(), "seconds": round(time.monotonic() - began, 2)}
            if self._cache:
                self._cache.put(key, known)
        return ModuleProof(lemma.name, lemma.method, says=lemma.statement, **known)

    def prove_harnesses(self, todo: Sequence[Harness]) -> Iterator[ModuleProof]:
        """Prove the harnesses `todo` by induction, in parallel; yields the proofs in order.

        A harness is a Verilog module around a module of the fabric, with assertions.
        """
        solved = map_in_threads(lambda harness: prove_harness(harness, self._cache), todo)
        for number, (harness, result) in enumerate(zip(todo, solved, strict=True)):
            if result.failed:
                raise Refuted(result.failed)
            self._progress(number + 1, len(todo), "what is proved by induction")
            yield ModuleProof(
                harness.name, "induction over time", harness.properties, result.seconds,
                harness.statement,
            )  # fmt: skip
