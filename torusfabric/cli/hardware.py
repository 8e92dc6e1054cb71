"""The commands ``verilog``, ``synth`` and ``prove``: write, synthesize and prove hardware."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..analysis.facts import facts_text
from ..contract.options import add_options, parse_positive_int
from ..errors import InputError
from ..fabric.options import (
    add_bus_option,
    add_fabric_file_option,
    add_fabric_options,
    add_prefix_option,
    add_ram_option,
    add_selection_arguments,
    add_tables_options,
    add_top_options,
)
from ..fabric.spec import FabricSpec
from ..planning import require_result_memory
from ..toolchain.notices import send_notice
from .arguments import FORCE, VCD, check_output, command_line, folder_argument
from .output import (
    print_facts,
    print_json,
    print_line,
    print_rendered,
    print_report,
    print_table,
    progress_bar,
)
from .parser import Commands, add_command
from .tables import check_fabric_file, fabric_of_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..fabric.make import BuiltFabric
    from ..verilog.design import Design

__all__ = ["add_commands"]

#: Largest share of a mode's LUTs that further forms may take without a notice.
MOST_FORMS_SHARE = 0.1

#: Share of used bits below which a notice advises against block RAMs.
LEAST_BRAM_FILL = 0.25

#: Heads of the columns of the table of modes, by the keys of a count.
HEADS = {
    "router_luts": "router LUTs",
    "router_gates": "router GE",
    "router_ffs": "FFs",
    "router_brams": "BRAMs",
    "luts": "fabric LUTs",
    "gates": "fabric GE",
    "ffs": "FFs",
    "brams": "BRAMs",
    "memory_bits": "memory bits",
    "rom_bits": "ROM bits",
}


def add_commands(commands: Commands) -> None:
    """Add the commands ``verilog``, ``synth`` and ``prove`` and their arguments.

    `commands` has the parser of each command.
    """
    verilog = add_command(commands, "verilog", run_verilog)
    synth = add_command(commands, "synth", run_synth)
    prove = add_command(commands, "prove", run_prove)
    for parser in (verilog, synth, prove):
        add_selection_arguments(parser, several=True)
        add_fabric_options(parser)
        add_top_options(parser, "host", "core", "stream")
        add_bus_option(parser)
        if parser is not prove:
            add_tables_options(parser)
    add_ram_option(verilog, auto="the tool chooses")
    add_ram_option(synth, auto="chosen so that the fabric fits the device, see the report")
    _add_verilog_options(verilog)
    _add_synth_options(synth)
    _add_prove_options(prove)


def _add_verilog_options(verilog: ArgumentParser) -> None:
    """Add the arguments of ``verilog`` for the output files."""
    group = verilog.add_argument_group("files")
    add_prefix_option(group)
    add_options(
        group,
        """
        --flow: Write a project and constraints for these tools as well. Default: none.
        --templates: Write an instance of the fabric to be copied, and SystemVerilog assertions to
            bind.
        -o --output DIR: Folder for the files. Example: out/.
        """,
        FORCE,
        flow={"choices": ("vivado", "quartus", "librelane", "tinytapeout")},
        output={"type": folder_argument, "required": True},
    )


def _add_synth_options(synth: ArgumentParser) -> None:
    """Add the arguments of ``synth`` for the device and the tools."""
    add_options(
        synth,
        """
        --target NAME: Device: ice40-hx8k, ice40-up5k, ecp5-25k, ecp5-45k, ecp5-85k or
            gowin-gw1nr-9; without place and route also xilinx-7, xilinx-us, cyclone-v, nexus,
            gatemate and efinix, the largest known or with a part behind, and asic for silicon.
            Example: xilinx-us-vu9p.
        --liberty FILE: with --target asic: Liberty file with the cells of a process. Default: cells
            of no process, with typical areas.
        --mapping: Goal of synthesis: compact for few LUTs, fast for wide multiplexers where the
            device has them. Default: compact.
        --pnr: Place and route as well, which gives clock frequencies.
        --seeds N: with --pnr: number of placements, of which the median counts. Default: 1.
        """,
        target={"required": True},
        mapping={"choices": ("compact", "fast"), "default": "compact"},
        seeds=parse_positive_int,
    )


def _add_prove_options(prove: ArgumentParser) -> None:
    """Add the arguments of ``prove`` for an existing fabric and for the waveform file."""
    add_fabric_file_option(prove)
    add_options(
        prove,
        """
            --image FILE: with --fabric: image that is loaded. Default: the one with which the
                fabric was built.
            """,
    )
    text = """
        --wave FILE.vcd: File for the waves of a counterexample. Default: counterexample.vcd.
        """
    add_options(
        prove.add_argument_group("files"), text, FORCE, wave={"default": "counterexample.vcd"}
    )


def run_verilog(arguments: Namespace) -> None:
    """Run ``verilog``: write the Verilog and the manifest of a fabric."""
    from .. import verilog

    made = FabricSpec.of(vars(arguments)).make()
    fabric, system = made.fabric, made.system
    how = {name: getattr(arguments, name) for name in ("ram", "flow", "templates")}
    write: Callable[..., Design] = partial(verilog.write, fabric, **how)
    if system:
        write = partial(system.adapter.import_part("files").write, system, vars(arguments))
    with progress_bar("writing Verilog"):
        command = command_line(arguments, made)
        design = write(arguments.output, command=command, force=arguments.force)
    facts = {
        "folder": arguments.output,
        "files": design.file_names,
        "modules": len(design.modules),
        "lines": design.text.count("\n"),
        "predicted_cycles": (system or fabric).predicted_cycles,
    }
    more: dict[str, Any]
    said: dict[str, Any]
    if system:
        more, said = system.facts(), system.facts_text()
    else:
        more = {"router_classes": len(design.classes), "origins": fabric.origins.to_json()}
        said = {"router classes": len(design.classes), "origins": fabric.origins}
    words = facts_text(facts | made.facts) | {"files": " ".join(facts["files"])} | said
    print_report(arguments, facts | more | made.facts, words)


def run_synth(arguments: Namespace) -> None:
    """Run ``synth``: synthesize a fabric, and report its costs.

    For a fabric of several modes or forms, each is also synthesized alone. If each run chooses the
    root, the memories are compared with those of a fabric with the fixed root 0.
    """
    from .. import verilog
    from ..fpga.synthesis.by_mode import cost_by_mode, cost_of_forms
    from ..fpga.synthesis.memory_choice import block_ram_fill
    from ..fpga.synthesis.synthesize import synthesize
    from ..fpga.synthesis.target import SILICON, find_target
    from ..verilog.module_text import AUTO

    if arguments.liberty:
        if arguments.target != SILICON:
            raise InputError(
                f"--liberty is for --target asic, not {arguments.target}; leave it out, or give "
                "--target asic"
            )
        arguments.target = f"{SILICON}:{arguments.liberty}"
    device = find_target(arguments.target)
    seeds = arguments.seeds or 1
    require_result_memory("--seeds", seeds)
    made = FabricSpec.of(vars(arguments)).make()
    for one in made.chosen:
        if one.forms and one.why:
            send_notice(f"Forms of {one.schedule.collective}: {one.why}")
    chosen = arguments.ram == AUTO
    with progress_bar("writing Verilog"):
        design = made.fabric if chosen else verilog.emit(made.fabric, ram=arguments.ram)
    with progress_bar("synthesizing") as progress:
        report = synthesize(
            design,
            arguments.target,
            pnr=arguments.pnr,
            mapping=arguments.mapping,
            seeds=tuple(range(1, seeds + 1)),
            progress=progress,
        )
    share = block_ram_fill(report, device)
    root = None
    if made.fabric.program.any_root:
        # Compare with the best fabric for root 0; some algorithms plan only for any root.
        try:
            fixed = _storage_facts(made.spec.replace(root=None).make())
        except InputError:
            fixed = None
        root = _storage_facts(made) | {"from_node_0": fixed}
    bar = lambda name: progress_bar(f"synthesizing {name} alone")
    several = len(made.fabric.program.modes) > 1
    modes = cost_by_mode(made.fabric, report, bar) if several else None
    forms = cost_of_forms(made.fabric, report, modes, bar)
    if arguments.json:
        more = {
            "any_root": root,
            "block_ram_share": share,
            "by_mode": modes,
            "forms": forms,
            "why": [one.why for one in made.chosen if one.why],
        }
        print_json(report.to_json() | {name: value for name, value in more.items() if value})
        return
    print_rendered(report.render())
    if not chosen and share is not None and share < LEAST_BRAM_FILL:
        print_line(
            f"block RAMs are {100 * share:.0f} % full: --ram distributed:DEPTH makes memories of "
            "up to DEPTH words of LUTs"
        )
    if root:
        words = "{memory_bits:,} bits of memories and {rom_bits:,} of ROMs ({algorithm})".format
        other = f"; from node 0 {words(**fixed)}" if fixed else ""
        print_facts({"any root": words(**root) + other})
    if modes:
        _print_mode_cost(modes)
    for cost in forms:
        if cost["share"] > MOST_FORMS_SHARE:
            luts, shorter = cost["luts"], cost["luts"] - cost["longest"]
            print_line(
                f"forms of mode {cost['mode']}: {shorter} of its {luts} LUTs "
                f"({100 * cost['share']:.0f} %) are for shorter messages than the longest; "
                "--forms long leaves them out"
            )


def _print_mode_cost(found: dict[str, Any]) -> None:
    """Print a table of costs: each mode alone, all modes together, and how much more all take.

    The last row has the costs of all modes together, divided by the largest cost of a mode alone.
    `found` is the result of `cost_by_mode`: the costs of each mode, and of all modes together.
    """
    together, ratios = found["together"], found["ratios"]
    columns = {name: head for name, head in HEADS.items() if name in together}
    heads = [*columns, "inputs"]
    rows = [
        [
            f"{mode['collective']} by {mode['algorithm']}, alone",
            *map(mode.get, [*heads, "own_inputs"]),
        ]
        for mode in found["modes"]
    ]
    rows.append(["together", *map(together.get, heads), ""])
    shown = [f"{ratio:.2f}" if (ratio := ratios[head]) is not None else "-" for head in columns]
    inputs = together["inputs"] / max(mode["inputs"] for mode in found["modes"])
    rows.append(["together / largest alone", *shown, f"{inputs:.2f}", ""])
    print_line()
    print_line("cost by mode")
    print_table(["", *columns.values(), "crossbar inputs", "own"], rows)
    shared, words = together["shared_inputs"], together["words"]
    print_line(f"shared crossbar inputs, selected in two modes or more: {shared}")
    apart = (
        f", in {words['send_maps']} separate layouts, because the host writes before it chooses a "
        "mode"
    )
    print_line(
        f"memories of all nodes: {words['received']} words that arrive, as deep as the deepest "
        f"mode needs; {words['sent']} words to send" + apart * (words["send_maps"] > 1)
    )
    if found["least_router_luts"] is not None:
        print_line(
            "selecting from all inputs of the largest router takes at least "
            f"{found['least_router_luts']} LUTs, {found['least_router_ratio']:.2f} times the "
            "LUTs of the largest router of one mode alone"
        )


def _storage_facts(made: BuiltFabric) -> dict[str, Any]:
    """Return facts about the fabric `made`, by the names under which ``synth`` prints them.

    They are the bits of memories and of ROMs, and the algorithm and the form of each schedule, such
    as ``matching`` and ``table``.
    """
    from ..rtl.inventory import take_inventory

    schedules, inventory = (
        [one.schedule for one in made.chosen],
        take_inventory(made.fabric.netlist),
    )
    return {
        "algorithm": ",".join(schedule.algorithm for schedule in schedules),
        "form": ",".join(schedule.form for schedule in schedules),
        "rom_bits": inventory.rom_bits,
        "memory_bits": inventory.memory_bits,
    }


def run_prove(arguments: Namespace) -> None:
    """Run ``prove``: prove a fabric, and print the proof.

    If a property fails, the waveforms of the counterexample are written to the file of ``--wave``,
    and an error is raised (status 2).
    """
    from ..proof import prove
    from ..toolchain.cache import Cache
    from ..toolchain.files import write_text_file

    check_output(arguments, arguments.wave, VCD)
    check_fabric_file(arguments, "wave", "force")
    if arguments.fabric:
        fabric, system = fabric_of_file(arguments)
    else:
        made = FabricSpec.of(vars(arguments)).make()
        fabric, system = made.fabric, made.system
    proved = partial(prove, fabric)
    if system:
        proved = partial(system.adapter.import_part("claims").prove, system)
    with progress_bar("proving") as progress:
        proof = proved(cache=Cache(), progress=progress)
    wrong = proof.counterexample
    if wrong and wrong.wave:
        write_text_file(arguments.wave, wrong.wave)
    if arguments.json:
        wave = arguments.wave if wrong and wrong.wave else None
        print_json(proof.to_json() | {"wave": wave})
    else:
        rows = [(p.name, p.properties, f"{p.seconds:g}", p.method, p.says) for p in proof.modules]
        print_table(("module", "properties", "seconds", "how", "what"), rows)
        print_line()
        print_facts({f"assumed {k + 1}": text for k, text in enumerate(proof.assumptions)})
        if proof.proved:
            print_line()
            print_line(proof.conclusion)
    proof.require_proved(f" (waves: {arguments.wave})" if wrong and wrong.wave else "")
