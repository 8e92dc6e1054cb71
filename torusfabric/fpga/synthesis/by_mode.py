"""What a fabric of several collectives costs, beside a fabric for each of them alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...program.counts import StoredWords, count_inputs, count_words
from ...program.merge import mode_alone
from ...rtl.fabric import Fabric
from ...rtl.inventory import take_inventory
from . import synthesize as synthesis

if TYPE_CHECKING:
    from ...program import Program
    from .report import SynthesisReport
    from .synthesize import Progress

__all__ = ["Costs", "CostsByMode", "FormsCost", "cost_by_mode", "cost_of_forms"]


@dataclass(frozen=True)
class Costs:
    """What a fabric costs.

    Parameters
    ----------
    router_luts, router_ffs, router_brams : int
        Of its dearest router, with the dearest contents of its ROM.
    luts, ffs, brams : int
        Of all of it.
    memory_bits, rom_bits : int
        What nodes store; settings and addresses of the program.
    """

    router_luts: int
    router_ffs: int
    router_brams: int
    luts: int
    ffs: int
    brams: int
    memory_bits: int
    rom_bits: int


@dataclass(frozen=True)
class CostsByMode:
    """What a fabric of several collectives costs, and one for each of them.

    Parameters
    ----------
    names : tuple of str
        Collective and algorithm of each mode.
    alone : tuple of Costs
        A fabric for each mode, of the same width and the same most flits.
    inputs : tuple of int
        Of each mode, what its out-ports select from, over all nodes.
    own_inputs : tuple of int
        What of this is selected in no other mode.
    shared_inputs : int
        What is selected in two modes or more.
    least_router_luts : int or None
        Fewer tables cannot select what each bit of the dearest router is measured to depend on.
    words : StoredWords
        What its memories hold.
    """

    names: tuple[tuple[str, str], ...]
    together: Costs
    alone: tuple[Costs, ...]
    inputs: tuple[int, ...]
    own_inputs: tuple[int, ...]
    shared_inputs: int
    least_router_luts: int | None
    words: StoredWords

    def ratios(self) -> dict[str, float | None]:
        """All of it to the dearest mode alone, by what is counted; None where that costs none."""
        found: dict[str, float | None] = {}
        for name, value in vars(self.together).items():
            dearest = max(getattr(costs, name) for costs in self.alone)
            found[name] = round(value / dearest, 3) if dearest else None
        return found

    @property
    def least_router_ratio(self) -> float | None:
        """The router to that of the dearest mode, if it had no more tables than must be."""
        dearest = max(costs.router_luts for costs in self.alone)
        known = self.least_router_luts is not None and dearest
        return round((self.least_router_luts or 0) / dearest, 3) if known else None

    def to_json(self) -> dict[str, Any]:
        """As a plain dict."""
        rows = zip(self.names, self.alone, self.inputs, self.own_inputs, strict=True)
        return {
            "modes": [
                {"mode": mode, "collective": collective, "algorithm": algorithm, **asdict(costs),
                 "inputs": inputs, "own_inputs": own}
                for mode, ((collective, algorithm), costs, inputs, own) in enumerate(rows)
            ],
            "together": asdict(self.together) | {
                "inputs": self.shared_inputs + sum(self.own_inputs),
                "shared_inputs": self.shared_inputs,
                "words": self.words._asdict(),
            },
            "ratios": self.ratios(),
            "least_router_luts": self.least_router_luts,
            "least_router_ratio": self.least_router_ratio,
        }  # fmt: skip


#: A context around the synthesis of one mode, given its name.
Around = Callable[[str], AbstractContextManager["Progress | None"]]


def cost_by_mode(
    fabric: Fabric, report: SynthesisReport, around: Around = lambda _: nullcontext()
) -> CostsByMode:
    """Synthesize a fabric for each mode, and put them beside one for all, of which a report is.

    Called with the name of each mode before it is synthesized, `around` gives a progress to report
    to.
    """
    program, alone = fabric.program, []
    names = tuple((program.name_of(mode), mode.algorithms) for mode in program.modes)
    for mode, name in enumerate(names):
        with around(" by ".join(name)) as progress:
            alone.append(_cost_of(fabric, mode_alone(program, mode), report, progress))
    inputs = count_inputs(program)
    return CostsByMode(
        names=names,
        together=_costs(fabric, report),
        alone=tuple(alone),
        inputs=inputs.of_modes,
        own_inputs=inputs.own,
        shared_inputs=inputs.shared,
        least_router_luts=_dearest_router(report).get("least_luts"),
        words=count_words(program),
    )


class FormsCost(NamedTuple):
    """What the forms of a mode cost.

    Parameters
    ----------
    luts : int
        Of a fabric for the mode alone.
    longest : int
        Of one that has only its form for the longest messages.
    """

    mode: int
    luts: int
    longest: int

    @property
    def share(self) -> float:
        """The share of the other forms."""
        return round(1 - self.longest / self.luts, 3)


def cost_of_forms(
    fabric: Fabric,
    report: SynthesisReport,
    by_mode: CostsByMode | None,
    around: Around = lambda _: nullcontext(),
) -> list[FormsCost]:
    """Synthesize a fabric with the form for the longest messages alone, where there are several.

    What each mode costs is known where there are several; all else is as of `cost_by_mode`.
    """
    found = []
    for number, mode in enumerate(fabric.program.modes):
        if not mode.several:
            continue
        luts = by_mode.alone[number].luts if by_mode else report.fabric["luts"]
        longest = fabric.program.part(mode.form_of(fabric.flits))
        with around(f"{mode.collective} by {mode.schedule.algorithm}") as progress:
            found.append(FormsCost(number, luts, _cost_of(fabric, longest, report, progress).luts))
    return found


def _cost_of(
    fabric: Fabric, program: Program, report: SynthesisReport, progress: Progress | None
) -> Costs:
    """What a fabric like one that was synthesized costs with another program."""
    names = ("width", "top", "bus", "clocks", "beat", "timeout")
    same = {name: getattr(fabric, name) for name in names}
    alone = Fabric(program, abort=fabric.aborts, **same)
    found = synthesis.synthesize(alone, report.target, mapping=report.mapping, progress=progress)
    return _costs(alone, found)


def _costs(fabric: Fabric, report: SynthesisReport) -> Costs:
    """What a fabric costs, by its report."""
    inventory, router = take_inventory(fabric.netlist), _dearest_router(report)
    names = ("luts", "ffs", "brams")
    counts = {f"router_{name}": router[name] for name in names}
    counts |= {name: report.fabric[name] for name in names}
    return Costs(**counts, memory_bits=inventory.memory_bits, rom_bits=inventory.rom_bits)


def _dearest_router(report: SynthesisReport) -> dict[str, Any]:
    """The class of routers with the most LUTs."""
    return max(report.classes, key=lambda row: row["luts"])
