"""The command that puts algorithms side by side."""

from ..schedule import Switching
from .command import add_command
from .fabric import add_fabric_options, operator_of
from .output import print_json, print_table, progress_bar
from .selection import add_selection, parse_selection

__all__ = ["add_commands"]


def add_commands(commands):
    """Add the command to a parser."""
    compare = add_command(
        commands,
        "compare",
        run_compare,
        "put all algorithms that fit side by side",
        "torusfabric compare 8x8 allgather --target ecp5-25k",
    )
    add_selection(compare, algorithm=False)
    add_fabric_options(compare)
    compare.add_argument(
        "--target", metavar="NAME", help="synthesize too, for this device; see the synth command"
    )


def run_compare(arguments):
    """Compare, and print a table."""
    from ..fpga.synthesis.target import find_target
    from ..sweep.compare import compare

    if arguments.target:
        find_target(arguments.target)
    topology, collective, options = parse_selection(arguments)
    with progress_bar("planning") as progress:
        entries, flits, misfits = compare(
            topology,
            collective,
            options,
            width=arguments.width,
            flits=arguments.flits,
            operator=operator_of(arguments, collective),
            target=arguments.target,
            any_latency=arguments.latency == "auto",
            progress=progress,
        )
    if arguments.json:
        print_json(
            {
                "topology": str(topology),
                "collective": collective.kind,
                "width": arguments.width,
                "flits": flits,
                "target": arguments.target,
                "algorithms": [entry.to_json() for entry in entries],
                "misfits": misfits,
            }
        )
        return
    print(f"{topology} {collective}: {arguments.width} bits a flit, {flits} flits a message")
    _print_entries(entries, arguments.target)
    for entry in entries:
        if entry.reason:
            print(f"no hardware by {entry.algorithm}: {entry.reason}")
    for name, needs in misfits.items():
        print(f"{name} needs {needs}")


def _print_entries(entries, target):
    """One row an algorithm; rounds of circuits and steps of one hop are told apart."""
    names = ["chunks", "rounds", "bound", "delta", "tau", "cycles", "classes", "rom_bits",
             "memories"]  # fmt: skip
    names += ["router_luts", "luts", "ffs", "brams"] if target else []
    heads = {"rom_bits": "ROM bits", "router_luts": "router LUTs", "luts": "LUTs", "ffs": "FFs"}
    rows = [
        [
            entry.algorithm,
            "steps" if entry.switching == Switching.STORE_AND_FORWARD else "circuits",
            *("-" if getattr(entry, name) is None else getattr(entry, name) for name in names),
        ]
        for entry in entries
    ]
    heads |= {"rounds": "steps or rounds", "memories": "memories a node", "brams": "BRAMs"}
    print_table(["algorithm", "by", *(heads.get(name, name) for name in names)], rows)
