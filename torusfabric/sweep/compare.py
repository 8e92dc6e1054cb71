"""All algorithms that serve a selection, side by side."""

from dataclasses import MISSING, asdict, dataclass, fields
from fractions import Fraction
from math import lcm

from ..algorithms import CATALOGUE
from ..analysis.facts import schedule_facts
from ..errors import InputError
from ..planning.latency import quickest
from ..program import compile_program
from ..rtl import build_fabric
from ..rtl.inventory import take_inventory

__all__ = ["Entry", "compare"]


@dataclass(frozen=True)
class Entry:
    """What an algorithm makes of a selection; None is what does not exist, or was not asked for.

    Parameters
    ----------
    algorithm, switching : str
    ports, chunks, rounds, bound : int
        Of the schedule, and the fewest rounds that any schedule in its model could have.
    delta : int
        The sum over the rounds of their longest path, in hops.
    tau : Fraction
        The sum over the rounds of their longest message, in messages.
    cycles : int or None
        From start to done, for messages of `flits` flits.
    classes : int or None
        Router classes.
    rom_bits, memories, memory_bits : int or None
        See `Inventory`.
    router_luts : int or None
        Of the largest router.
    luts, ffs, brams : int or None
        Of the whole fabric, host port included.
    reason : str or None
        Why there is no hardware.
    """

    algorithm: str
    switching: str
    ports: int
    chunks: int
    rounds: int
    bound: int
    delta: int
    tau: Fraction
    cycles: int | None = None
    classes: int | None = None
    rom_bits: int | None = None
    memories: int | None = None
    memory_bits: int | None = None
    router_luts: int | None = None
    luts: int | None = None
    ffs: int | None = None
    brams: int | None = None
    reason: str | None = None

    def to_json(self):
        """The entry as plain data."""
        return asdict(self)


def compare(topology, collective, options, *, width=32, flits=None, operator=None, target=None,
            any_latency=False, progress=None):  # fmt: skip
    """Plan, check and build with every algorithm that fits.

    Parameters
    ----------
    topology : Topology
    collective : Collective
    options : Options
    width : int
        Bits of a flit.
    flits : int, optional
        Flits of a message; by default as few as all of them can cut into equal chunks.
    operator : Operator, optional
        Of a reduction.
    target : str, optional
        Device to synthesize for.
    any_latency : bool
        Whether a table of sums may have the latency that is quickest in hardware.
    progress : function of (done, total, what), optional

    Returns
    -------
    entries : list of Entry
        In the order of the catalogue.
    flits : int
    misfits : dict of str to str
        What each other algorithm for the collective would need.

    Raises
    ------
    InputError
        If no algorithm fits.
    """
    known = [a for a in CATALOGUE if collective.kind in a.collectives]
    misfits = {a.name: why for a in known if (why := a.why_not(topology, collective, options))}
    fitting = [a for a in known if a.name not in misfits]
    if not fitting:
        needs = "; ".join(f"{name} needs {why}" for name, why in misfits.items())
        raise InputError(f"No algorithm fits {topology} {collective.kind}: {needs}")
    tell = progress or (lambda done, total, what: None)
    schedules = []
    for done, algorithm in enumerate(fitting):
        tell(done, 2 * len(fitting), f"planning {algorithm.name}")
        schedules.append(algorithm(topology, collective, options))
    flits = flits or lcm(*(schedule.chunks for schedule in schedules))
    entries = []
    for done, (algorithm, schedule) in enumerate(zip(fitting, schedules, strict=True)):
        if any_latency and flits % schedule.chunks == 0:
            schedule, _ = quickest(algorithm, topology, collective, options, flits)
        tell(len(fitting) + done, 2 * len(fitting), f"building {schedule.algorithm}")
        entries.append(_entry(schedule, width, flits, operator, target))
    return entries, flits, misfits


def _entry(schedule, width, flits, operator, target):
    """What becomes of a schedule."""
    facts = schedule_facts(schedule)
    names = [item.name for item in fields(Entry) if item.default is MISSING]
    planned = {name: facts[name] for name in names}
    try:
        fabric = build_fabric(compile_program(schedule, operator), width=width, flits=flits)
    except InputError as error:
        return Entry(**planned, reason=str(error))
    built = {
        "cycles": fabric.cycles,
        "classes": len(fabric.program.class_sizes),
        **take_inventory(fabric)._asdict(),
    }
    return Entry(**planned, **built, **(_synthesized(fabric, target) if target else {}))


def _synthesized(fabric, target):
    """What a fabric costs on a device."""
    from .. import verilog
    from ..fpga.synthesis import synthesize

    design = verilog.emit(fabric, command="torusfabric compare")
    report = synthesize(design, target).to_json()
    return {
        "router_luts": max(row["luts"] for row in report["classes"]),
        **{name: report["fabric"][name] for name in ("luts", "ffs", "brams")},
    }
