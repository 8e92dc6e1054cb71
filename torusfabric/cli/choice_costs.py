"""What choices cost: that several collectives share a fabric, and that a root can be any."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .fabric import Made, make_fabric
from .output import print_line, print_table, progress_bar

if TYPE_CHECKING:
    from ..fpga.synthesis.by_mode import CostsByMode, FormsCost
    from ..fpga.synthesis.report import SynthesisReport
    from ..program.counts import StoredWords
    from ..rtl import Fabric

__all__ = ["choice_costs", "print_forms_cost", "print_mode_cost", "root_cost", "root_cost_in_words"]

#: What forms may cost of a mode without a word.
TENTH = 0.1

#: The columns of the table, by what is counted.
HEADS = {
    "router_luts": "router LUTs",
    "router_ffs": "FFs",
    "router_brams": "BRAMs",
    "luts": "fabric LUTs",
    "ffs": "FFs",
    "brams": "BRAMs",
    "memory_bits": "memory bits",
    "rom_bits": "ROM bits",
}


def choice_costs(
    fabric: Fabric, report: SynthesisReport
) -> tuple[CostsByMode | None, list[FormsCost]]:
    """What a fabric costs beside one for each of its modes, if it has several.

    And what forms of modes cost beside those for the longest messages alone.
    """
    from ..fpga.synthesis.by_mode import cost_by_mode, cost_of_forms

    alone = lambda name: progress_bar(f"synthesizing {name} alone")
    modes = cost_by_mode(fabric, report, alone) if len(fabric.program.modes) > 1 else None
    return modes, cost_of_forms(fabric, report, modes, alone)


def print_forms_cost(costs: list[FormsCost]) -> None:
    """Say where forms cost more than a tenth of a mode."""
    for cost in costs:
        if cost.share > TENTH:
            print_line(
                f"forms of mode {cost.mode}: {cost.luts - cost.longest} of its {cost.luts} LUTs "
                f"({100 * cost.share:.0f} %) are for shorter messages than the longest; "
                "--forms long leaves them out"
            )


def print_mode_cost(found: CostsByMode) -> None:
    """Print a row for each mode alone, then all together, and that to the dearest."""
    rows = [
        [f"{' by '.join(name)}, alone", *(getattr(costs, head) for head in HEADS), inputs, own]
        for name, costs, inputs, own in zip(
            found.names, found.alone, found.inputs, found.own_inputs, strict=True
        )
    ]
    together, ratios = found.together, found.ratios()
    total = found.shared_inputs + sum(found.own_inputs)
    rows.append(["together", *(getattr(together, head) for head in HEADS), total, ""])
    shown = [f"{ratio:.2f}" if (ratio := ratios[head]) is not None else "-" for head in HEADS]
    rows.append(["to the dearest alone", *shown, f"{total / max(found.inputs):.2f}", ""])
    print_line()
    print_line("cost by mode")
    print_table(["", *HEADS.values(), "crossbar inputs", "own"], rows)
    print_line(f"shared crossbar inputs, selected in two modes or more: {found.shared_inputs}")
    print_line(_memories(found.words))
    if found.least_router_luts is not None:
        print_line(
            f"no router can select from what the dearest one selects from in less than "
            f"{found.least_router_luts} LUTs, {found.least_router_ratio:.2f} times the dearest "
            "alone"
        )


def _memories(words: StoredWords) -> str:
    """What memories hold, and why modes do not share all of them."""
    apart = (
        f", apart for {words.send_maps} ways to lay them out, since the host writes before it "
        "names a mode"
    )
    return (
        f"memories of all nodes: {words.received} words that arrive, as deep as the deepest mode "
        f"needs; {words.sent} words to send" + apart * (words.send_maps > 1)
    )


def root_cost(arguments: Namespace, made: Made) -> dict[str, Any]:
    """What a fabric of any root, which arguments ask for, stores, and what one from node 0 does.

    These are bits of ROMs and memories; ``from_node_0`` has the same of the best fabric of a fixed
    root, or None if the algorithm that is named serves no root alone.
    """
    try:
        fixed = _stored(make_fabric(Namespace(**{**vars(arguments), "root": None})))
    except InputError:
        fixed = None
    return _stored(made) | {"from_node_0": fixed}


def _stored(made: Made) -> dict[str, Any]:
    """What a fabric stores, its algorithm, and the form of its schedule."""
    from ..rtl.inventory import take_inventory

    schedules = [one.schedule for one in made.chosen]
    inventory = take_inventory(made.fabric.netlist)
    return {
        "algorithm": ",".join(schedule.algorithm for schedule in schedules),
        "form": ",".join(schedule.form for schedule in schedules),
        "rom_bits": inventory.rom_bits,
        "memory_bits": inventory.memory_bits,
    }


def root_cost_in_words(cost: dict[str, Any]) -> str:
    """The same for people."""
    words = "{memory_bits:,} bits of memories and {rom_bits:,} of ROMs ({algorithm})".format
    fixed = cost["from_node_0"]
    return words(**cost) + (f"; from node 0 {words(**fixed)}" if fixed else "")
