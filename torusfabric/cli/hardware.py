"""The commands that make hardware: verilog, synth."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from typing import Any

from ..analysis.facts import in_words
from ..planning import announce, require_results
from ..toolchain.notices import say
from .arguments import add_force, add_options, folder, positive
from .choice_costs import (
    choice_costs,
    print_forms_cost,
    print_mode_cost,
    root_cost,
    root_cost_in_words,
)
from .fabric import make_fabric
from .hardware_options import (
    add_bus_option,
    add_fabric_options,
    add_ram_option,
    add_top_options,
    check_compact,
)
from .output import print_facts, print_json, print_rendered, print_report, progress_bar
from .parser import Commands, add_command
from .selection_options import add_selection
from .several_boards import add_boards_options, check_one_chip, write_boards
from .tables import add_tables_options

__all__ = ["add_commands"]

#: Nodes from which on text has loops unless something is said.
LARGE = 128


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    verilog = add_command(commands, "verilog", run_verilog)
    synth = add_command(commands, "synth", run_synth)
    for parser in (verilog, synth):
        add_selection(parser, several=True)
        add_fabric_options(parser, any_length=True)
        add_top_options(parser, "host", "core", "stream")
        add_bus_option(parser)
        add_tables_options(parser)
    add_ram_option(verilog, default="auto", otherwise="auto: the tool chooses")
    add_ram_option(synth, default=None, otherwise="block RAM as far as an ECP5 has it, else auto")
    _add_verilog_options(verilog)
    _add_synth_options(synth)


def _add_verilog_options(verilog: ArgumentParser) -> None:
    """Add the arguments that say what to write."""
    add_options(
        verilog,
        f"""
        --prefix NAME: what the names of all modules begin with (default nothing)
        --docs: describe the ports too: a table, and timing diagrams drawn from a simulation
        --flow: write a project and constraints for these tools too, and IP-XACT
        --templates: write an instance of the fabric to be copied, and SystemVerilog assertions to
            bind
        --fold: say where nodes lie in the folded torus, whose links are all short, and write
            regions for nextpnr
        --compact: write generate loops over nodes, with tables of what differs (default from
            {LARGE} nodes on, without --flow or --boards)
        -o --output DIR: folder for the files
        """,
        prefix={"default": ""},
        flow={"choices": ("vivado", "quartus")},
        compact={"action": BooleanOptionalAction},
        output={"type": folder, "required": True},
    )
    add_force(verilog)
    add_boards_options(verilog)


def _add_synth_options(synth: ArgumentParser) -> None:
    """Add the arguments that say how to synthesize."""
    add_options(
        synth,
        """
        --target NAME: ice40-hx8k, ice40-up5k, ecp5-25k, ecp5-45k, ecp5-85k or gowin-gw1nr-9;
            without place and route also xilinx-7, xilinx-us, cyclone-v, nexus, gatemate and efinix,
            with a part behind (xilinx-us-vu9p) or the largest that is known
        --mapping: few LUTs, or wide multiplexers where the device has them (default compact)
        --pnr: place and route too, for clock frequencies
        --seeds N: placements to try; the median counts (default 1)
        """,
        target={"required": True},
        mapping={"choices": ("compact", "fast"), "default": "compact"},
        seeds=(positive, 1),
    )


def run_verilog(arguments: Namespace) -> None:
    """Write Verilog and manifest."""
    from .. import verilog
    from ..verilog.flows.regions import in_rows, longest_link

    check_compact(arguments, "boards", "flow")
    if arguments.boards is not None:
        write_boards(arguments)
        return
    check_one_chip(arguments)

    made = make_fabric(arguments, any_root=True)
    fabric = made.fabric
    usual = fabric.nodes >= LARGE and arguments.flow is None
    compact = usual if arguments.compact is None else arguments.compact
    command = made.command_line("verilog") + " --docs" * arguments.docs
    command += f" --flow {arguments.flow}" if arguments.flow else ""
    command += "".join(f" --{name}" * getattr(arguments, name) for name in ("templates", "fold"))
    if compact != usual:
        command += " --compact" if compact else " --no-compact"
    with progress_bar("writing Verilog"):
        draw = _diagrams if arguments.docs else None
        design = verilog.write(
            fabric,
            arguments.output,
            command=command,
            draw=draw,
            force=arguments.force,
            ram=arguments.ram,
            flow=arguments.flow,
            templates=arguments.templates,
            fold=arguments.fold,
            compact=compact,
        )
    facts = {
        "folder": arguments.output,
        "files": design.file_names,
        "modules": len(design.modules),
        "router_classes": len(design.classes),
        "lines": design.text.count("\n"),
        "predicted_cycles": fabric.predicted_cycles,
        "origins": fabric.origins.to_json(),
    } | made.facts
    words = in_words(facts)
    words |= {"files": " ".join(facts["files"]), "origins": fabric.origins}
    if arguments.fold:
        rows, far = in_rows(fabric.program.topology), longest_link(fabric.program.topology)
        facts |= {"folded": rows, "longest_link_in_regions": far}
        words["folded"] = f"longest link {far}, in regions; nodes side by side:"
        words |= {f"row {k}": " ".join(map(str, row)) for k, row in enumerate(rows)}
    print_report(arguments, facts, words)


def _diagrams(fabric: Any) -> list[Any]:
    """Timing diagrams of a fabric."""
    from ..simulation.diagrams import draw_diagrams
    from ..simulation.engines.choice import estimate
    from ..verilog.diagram import INSTALL, can_render

    announce("Simulating", estimate(fabric)[0])
    if not can_render():
        say(f"Timing diagrams are written as data for WaveDrom alone; for pictures: {INSTALL}")
    return draw_diagrams(fabric)


def run_synth(arguments: Namespace) -> None:
    """Synthesize and report."""
    from .. import verilog
    from ..fpga.synthesis.memory_choice import fitting_rule
    from ..fpga.synthesis.synthesize import synthesize
    from ..fpga.synthesis.target import find_target

    device = find_target(arguments.target)
    require_results("--seeds", arguments.seeds)
    made = make_fabric(arguments, any_root=True)
    with progress_bar("writing Verilog"):
        rule = arguments.ram or fitting_rule(made.fabric, device)
        design = verilog.emit(made.fabric, command=made.command_line("synth"), ram=rule)
    with progress_bar("synthesizing") as progress:
        report = synthesize(
            design,
            arguments.target,
            pnr=arguments.pnr,
            mapping=arguments.mapping,
            seeds=tuple(range(1, arguments.seeds + 1)),
            progress=progress,
        )
    root = root_cost(arguments, made) if made.fabric.program.any_root else None
    modes, forms = choice_costs(made.fabric, report)
    if arguments.json:
        more = {
            "any_root": root,
            "by_mode": modes.to_json() if modes else None,
            "forms": [cost._asdict() | {"share": cost.share} for cost in forms],
        }
        print_json(report.to_json() | {name: value for name, value in more.items() if value})
        return
    print_rendered(report.render())
    if root:
        print_facts({"any root": root_cost_in_words(root)})
    if modes:
        print_mode_cost(modes)
    print_forms_cost(forms)
