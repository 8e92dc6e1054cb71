"""The proof of a whole fabric: what is proved of it by its top, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..rtl.fabric import Top
from ..rtl.netlist import Role
from ..toolchain import tools
from ..toolchain.cache import Cache, digest, source_digest
from ..toolchain.processes import parallel
from ..verilog import emit
from .bridges import bridge_harness
from .gates import WORDS, GateText, read_gates
from .host import check_host
from .loaded import check_same, loaded
from .modules import alike, check_roms
from .report import ModuleProof, Proof, Refuted, refuted
from .routers import link_harnesses, operator_modules, router_harnesses
from .solver import Harness, solve
from .streams import stream_harnesses
from .whole import Whole
from .wiring import (
    WIRING,
    Check,
    check_core_ports,
    check_distribution,
    check_same_hardware,
    check_stream_ends,
    check_tree,
    check_wiring,
)

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["ASSUMPTIONS", "Lemma", "Steps", "as_far_as_it_holds", "check_provable", "of_modules",
           "of_top", "prove", "whole_runs"]  # fmt: skip

#: What is not proved of any fabric.
ASSUMPTIONS = (
    "Yosys reads the text as synthesis and simulators do; Yosys, z3 and this prover are right.",
    "Synthesis, place and route, the device and its clock do what the text says.",
    "A reset lasts at least 16 clock edges, and comes before the first start.",
    "Nobody writes messages from the start of a run until it is done, or reads what it brings.",
)

#: What is not proved where tables are loaded.
OF_LOADED = (
    "Nothing is loaded meanwhile; the loader has written the image into the tables as it says.",
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
    check_provable(fabric)
    held = loaded(fabric) if fabric.frame else fabric
    proved = _steps(held, design or emit(held), cache, progress, written=fabric)
    return as_far_as_it_holds(proved, _assumptions(fabric), _conclusion(fabric))


def check_provable(fabric: Fabric) -> None:
    """Raise the errors of `prove` unless it can be proved, by tools that there are."""
    if fabric.frame and fabric.top is Top.STREAM and fabric.program.any_root:
        raise InputError("Root must be fixed for streams with loaded tables to be proved, not any")
    loops = [form.loop for form in fabric.program.forms]
    before_injection = any(
        len(readers) > 1 for loop in loops for readers in loop.sources.injections
    )
    if before_injection and any(operator.signed for operator in fabric.program.operators):
        raise InputError(
            "Operators to be proved in front of injection ports must not be signed (by --algorithm "
            "matching, which combines words behind in-ports, they are proved)"
        )
    for operator in fabric.operator_unit.operators if fabric.operator_unit else ():
        if operator.proof is None or operator.latency or not operator.associative:
            raise InputError(
                "Operator to be proved must be associative, without registers, and state its proof,"
                f" not {operator}"
            )
    for tool in ("yosys", "z3"):  # before work of a minute that would need them in the end
        tools.require(tool)


def as_far_as_it_holds(
    proofs: Iterable[ModuleProof], assumptions: Iterable[str], conclusion: str
) -> Proof:
    """What is proved, up to what does not hold."""
    found: list[ModuleProof] = []
    wrong = None
    try:
        found += proofs
    except Refuted as error:
        wrong = error.counterexample
    return Proof(tuple(found), tuple(assumptions), conclusion, wrong)


def _steps(
    fabric: Fabric, design: Design, cache: Cache | None, progress: Progress, *, written: Fabric
) -> Iterator[ModuleProof]:
    """Everything, whole runs last."""
    roles = {fabric.prefix + name: role for name, role in fabric.netlist.roles.items()}
    closed = [name for name, role in roles.items() if role is Role.STREAM]
    units = operator_modules(fabric, design)
    text = read_gates(design, roles, cache, closed=closed, units=units)
    steps = Steps(fabric, design, cache, progress)
    if design.plain_names.nets:
        plain = emit(fabric)
        other = read_gates(plain, roles, cache, closed=closed, units=units)
        says = "loops are the same instances, contents and wires as text without them"
        check = partial(check_same_hardware, design, text, plain, other)
        yield steps.known(Lemma("loops", "comparison", says, check))
    whole = Whole(fabric, text)
    yield steps.known(Lemma(*WIRING, partial(check_wiring, fabric, text)))
    if fabric.frame:
        says = "all modules but tables and the loader are the same whatever is loaded"
        yield steps.known(Lemma("text", "comparison", says, partial(check_same, written, design)))
    yield from map(steps.known, of_top(fabric, text))
    yield from map(steps.known, of_modules(fabric, text, design, cache))
    yield from steps.solved([*_by_induction(fabric, design)])
    yield steps.known(whole_runs(whole, progress))


def _by_induction(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """What is proved by the solver."""
    yield from router_harnesses(fabric, design)
    yield from link_harnesses(fabric, design)
    if fabric.bus:
        yield bridge_harness(design, fabric.bus)
    if fabric.top is Top.STREAM:
        yield from stream_harnesses(fabric, design)


def _assumptions(fabric: Fabric) -> Iterator[str]:
    """What is not proved."""
    yield from ASSUMPTIONS
    if fabric.frame:
        yield from OF_LOADED
        if fabric.top is Top.STREAM:
            yield "Loaders, unloaders and commands do what those of fixed tables do by constants."
        else:
            yield "The host port finds by the table of blocks what the address map says."
    if fabric.aborts:
        yield "Nobody aborts a run."
    if fabric.bus and fabric.top is Top.STREAM:
        yield "The registers behind the bus give commands, and take statuses, as streams do."
    elif fabric.bus:
        yield "The registers behind the bus do with the host port what each access asks for."
    if fabric.bus and fabric.bus.bursts and fabric.top is not Top.STREAM:
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


#: The rooms whose text says what the words and numbers are that a text is compared with.
ROOMS = ("collective", "program", "proof", "rtl", "schedule", "topology", "verilog")

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
        # What nodes are owed, and where it lies, follows from the schedules.
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
