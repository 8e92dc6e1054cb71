"""The proof of a whole fabric: what is proved of it by its top, one after the other."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..rtl.fabric import Top
from ..rtl.netlist import Role
from ..rtl.placement import place
from ..toolchain import tools
from ..toolchain.cache import Cache, digest
from ..toolchain.processes import parallel
from ..verilog import emit
from .bridges import bridge_harness
from .gates import read_gates
from .host import check_host
from .links import link_harnesses
from .machine import WORDS
from .report import ModuleProof, Proof, Refuted, refuted
from .roms import check_roms
from .routers import operator_modules, router_harnesses
from .slices import alike
from .solver import Harness, solve
from .streams import stream_harnesses
from .whole import Whole
from .wiring import (
    Check,
    check_core_ports,
    check_distribution,
    check_stream_ends,
    check_tree,
    check_wiring,
)

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["prove"]

#: The ports in which words come and go.
WORD_PORTS = WORDS | {"rx", "write_data"}

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

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2)
    >>> prove(fabric).proved
    True
    """
    loops = [form.loop for form in fabric.program.forms]
    before_injection = any(
        len(readers) > 1 for loop in loops for readers in loop.sources.injections
    )
    if fabric.beat > 1:
        raise InputError(f"Beat must be 1 for a proof, not {fabric.beat}")
    if before_injection and any(operator.signed for operator in fabric.program.operators):
        raise InputError(
            "Operators to be proved in front of injection ports must not be signed (by --algorithm "
            "matching, which combines words behind in-ports, they are proved)"
        )
    if fabric.bus and fabric.top is Top.STREAM:
        raise InputError(f"Bus must be left out for a proof of streams, not {fabric.bus}")
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


class _Lemma(NamedTuple):
    """Something that holds: how it is proved, and what it says, in a line.

    `check` returns how many things are proved, or raises `Refuted`; `key` is what it depends on
    besides the text and the program.
    """

    name: str
    method: str
    says: str
    check: Callable[[], int]
    key: tuple[str, ...] = ()


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


class _Steps:
    """What is done, one after the other; what was proved before is not done again."""

    def __init__(
        self, fabric: Fabric, design: Design, cache: Cache | None, progress: Progress
    ) -> None:
        roles = {fabric.prefix + name: role for name, role in fabric.netlist.roles.items()}
        closed = [name for name, role in roles.items() if role is Role.STREAM]
        units = operator_modules(fabric, design)
        self._text = read_gates(design, roles, cache, closed=closed, units=units)
        self._placement = place(fabric.program)
        self._fabric, self._design, self._cache = fabric, design, cache
        self._progress = progress

    def all(self) -> Iterator[ModuleProof]:
        """Everything, whole runs last."""
        whole = Whole(self._fabric, self._placement, self._text)
        yield from map(self._known, self._lemmas())
        yield from self._solved([*self._by_induction()])
        check = partial(whole.prove, self._progress)
        yield self._known(_Lemma("whole runs", "symbolic execution to the end", whole.says, check,
                                 (whole.key(),)))  # fmt: skip

    def _lemmas(self) -> Iterator[_Lemma]:
        """What is proved without the solver, but for whole runs."""
        fabric, text, design = self._fabric, self._text, self._design
        yield _Lemma(
            "wiring",
            "comparison",
            "each in-port is wired to the opposite out-port of the neighbour there, and words stay "
            "whole",
            partial(check_wiring, fabric, text),
        )
        for name, method, says, check in OF_TOP[fabric.top]:
            yield _Lemma(name, method, says, partial(check, fabric, text))
        if design.rom in design.modules:
            yield _Lemma("rom", "all addresses", "a cycle later it shows the row at its address",
                         partial(check_roms, text, design, self._cache))  # fmt: skip
        for name, role in fabric.netlist.roles.items():
            if role in (Role.ROUTER, Role.ENDPOINT):
                module = text.modules[fabric.prefix + name]
                yield _Lemma(name, "comparison of structure", "all bits of words are treated alike",
                             partial(alike, module, WORD_PORTS, fabric.width))  # fmt: skip

    def _by_induction(self) -> Iterator[Harness]:
        """What is proved by the solver."""
        fabric, design = self._fabric, self._design
        yield from router_harnesses(fabric, design, self._placement)
        yield from link_harnesses(fabric, design)
        if fabric.bus:
            yield bridge_harness(design, fabric.bus)
        if fabric.top is Top.STREAM:
            yield from stream_harnesses(fabric, design)

    def _known(self, lemma: _Lemma) -> ModuleProof:
        """What is proved, or was."""
        self._progress(0, 0, lemma.name)
        program = self._fabric.program.digest
        key = digest("proved", lemma.name, self._design.text, program, _own_digest(), *lemma.key)
        known = self._cache.get(key) if self._cache else None
        if known is None:
            began = time.monotonic()
            known = {"properties": lemma.check(), "seconds": round(time.monotonic() - began, 2)}
            if self._cache:
                self._cache.put(key, known)
        return ModuleProof(lemma.name, lemma.method, says=lemma.says, **known)

    def _solved(self, todo: list[Harness]) -> Iterator[ModuleProof]:
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
    if fabric.bus and fabric.bus.bursts:
        yield "The windows behind the bus do with the host port what each burst asks for."
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
