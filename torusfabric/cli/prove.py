"""The command that proves the text of a fabric."""

from argparse import Namespace
from functools import partial

from ..errors import WorkFailed
from .adapted import make_system
from .arguments import FORCE, VCD, add_options, check_output
from .hardware_options import add_bus_option, add_fabric_options, add_top_options
from .output import print_facts, print_json, print_line, print_table, progress_bar
from .parser import Commands, add_command
from .selection_options import add_selection
from .tables import add_fabric_file, check_fabric_file, fabric_of_file

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    prove = add_command(commands, "prove", run_prove)
    add_selection(prove, several=True)
    add_fabric_options(prove)
    add_top_options(prove, "host", "core", "stream")
    add_bus_option(prove)
    add_fabric_file(prove)
    add_options(
        prove,
        """
        --image FILE: with --fabric: what is loaded (default what it is built with)
        --wave FILE.vcd: where to write the waves of what does not hold (default counterexample.vcd)
        """,
        FORCE,
        wave={"default": "counterexample.vcd"},
    )


def run_prove(arguments: Namespace) -> None:
    """Prove; returns 2 if anything does not hold."""
    from ..proof import prove
    from ..toolchain.cache import Cache
    from ..toolchain.files import write_file

    check_output(arguments, arguments.wave, VCD)
    check_fabric_file(arguments, "wave", "force")
    if arguments.fabric:
        proved = partial(prove, fabric_of_file(arguments))
    else:
        made = make_system(arguments)
        proved = partial(prove, made.fabric)
        if made.system:
            proved = partial(made.system.adapter.part("claims").prove, made.system)
    with progress_bar("proving") as progress:
        proof = proved(cache=Cache(), progress=progress)
    wrong = proof.counterexample
    if wrong and wrong.wave:
        write_file(arguments.wave, wrong.wave)
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
    if wrong:
        seen = f" (waves: {arguments.wave})" if wrong.wave else ""
        raise WorkFailed(f"{wrong.message}{seen}")
