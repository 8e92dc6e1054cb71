"""Mutants of the hardware: shares that simulation and proof notice.

A mutant is a fabric with one change: in a wire between instances, a bit of a ROM, or one place
inside a module (`rtl_tests/support/netlist_mutants.py`). Simulation compares every word and cycle,
in Amaranth's engine, or in the compiled engine for a fabric of several boards. The proof covers the
emitted Verilog. If neither notices a mutant, Yosys tries to prove it equivalent to the original.

A mutant survives if neither notices it and Yosys does not prove it equivalent. The status is 2 if
one survives. Most survivors change logic that no run reaches, such as a row of a table past the
last row.

    python sim/hardware_mutants.py                             # 320 mutants, half an hour
    python sim/hardware_mutants.py --kinds sums,boards --count 40
    python sim/hardware_mutants.py --mutant "tables:1:17"      # one mutant again
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "rtl_tests" / "support")]

from core_bench import check_core  # noqa: E402
from netlist_mutants import KINDS, Mutation, sampled, with_netlist  # noqa: E402

import torusfabric as tf  # noqa: E402
from torusfabric.adapters.boards.claims import prove_boards  # noqa: E402
from torusfabric.adapters.boards.drive import simulate_boards  # noqa: E402
from torusfabric.adapters.boards.files import emit_boards  # noqa: E402
from torusfabric.adapters.boards.hardware import BoardSystem  # noqa: E402
from torusfabric.adapters.loading.claims import with_constant_tables  # noqa: E402
from torusfabric.cli.output import print_json, progress_bar  # noqa: E402
from torusfabric.errors import InputError, WorkFailed  # noqa: E402
from torusfabric.fabric.fabric import Top  # noqa: E402
from torusfabric.proof import prove  # noqa: E402
from torusfabric.toolchain import tools  # noqa: E402
from torusfabric.toolchain.cache import Cache  # noqa: E402
from torusfabric.toolchain.folders import work_folder  # noqa: E402
from torusfabric.topology.boards import Boards  # noqa: E402
from torusfabric.verilog.design import Design  # noqa: E402

#: A small fabric of each kind: topology, collectives, options of `tf.compile` and of `tf.Fabric`.
FABRICS: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "wires": ("3x3", "allgather:hamiltonian", {"flits": 2}, {}),
    "tables": ("2x3", "alltoall:matching", {"flits": 2}, {}),
    "circuits": ("3x3", "broadcast:max-flow", {"flits": 3}, {}),
    "sums": ("2x3", "allreduce:matching", {"flits": 6, "operators": ["add", "max"]}, {}),
    "engines": ("2x3", "alltoall:matching,broadcast:max-flow",
                {"max_flits": 3, "root": "any"}, {}),
    "streams": ("2x3", "alltoall:matching", {"flits": 4}, {"top": "stream", "beat": 1}),
    "loading": ("3", "allgather:hamiltonian,allreduce:spanning-tree",
                {"max_flits": 2}, {"tables": "ram"}),
    "boards": (tf.Torus(2, link_latency=8), "allgather", {"max_flits": 2}, {"width": 8}),
}  # fmt: skip

#: Further kinds, in the same form. Fabrics with a bus have mutants of the bus bridge alone. It is
#: proved and not simulated.
OTHERS: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "tree sums": ("2x3", "allreduce:spanning-tree", {"flits": 2, "operators": ["add", "max"]}, {}),
    "cycle sums": ("3x3", "reduce-scatter:hamiltonian",
                   {"flits": 8, "operators": ["add", "min"]}, {}),
    "injected sums": ("3x3", "reduce:max-flow", {"flits": 2, "operators": ["add", "min"]}, {}),
    "float sums": ("2x2", "allreduce:spanning-tree",
                   {"flits": 2, "operators": ["add:fp16", "max:fp16"]}, {"width": 16}),
    "many rows": ("3x3", "alltoall:matching,allreduce:matching,allgather:hamiltonian",
                  {"max_flits": 2}, {}),
    "long links": (tf.Torus(2, 3, link_latency=(2, 7)), "alltoall:matching", {"flits": 2}, {}),
    "beats": ("3", "alltoall:matching", {"max_flits": 6}, {"width": 8, "beat": 2}),
    "loaded beats": ("3", "alltoall:matching,reduce:spanning-tree", {"max_flits": 6},
                     {"width": 8, "beat": 2, "tables": "ram"}),
    "cores": ("2x3", "alltoall:matching", {"flits": 2}, {"top": "core"}),
    "cores of any root": ("3x3", "gather:matching", {"flits": 2, "root": "any"}, {"top": "core"}),
    "direct cores": ("3x3", "allgather:hamiltonian", {"flits": 3}, {"top": "core"}),
    "clocks": ("2", "allgather:hamiltonian", {"flits": 1}, {"top": "stream", "clocks": "per-node"}),
    "commands": ("2", "alltoall:matching,broadcast:max-flow", {"max_flits": 8, "root": "any"},
                 {"top": "stream", "beat": 1}),
    "barriers": ("2", "allgather:hamiltonian,alltoall:matching",
                 {"max_flits": 2, "barrier": True}, {"top": "stream", "beat": 1}),
    "streams of meshes": ("mesh:3", "halo:any-network", {"flits": 2}, {"top": "stream", "beat": 1}),
    "streams of beats": ("3", "alltoall:matching", {"max_flits": 6},
                         {"top": "stream", "width": 16, "beat": 2}),
    "Wishbone": ("3", "allgather:hamiltonian", {"flits": 2}, {"width": 4, "bus": "wishbone"}),
    "AXI4-Lite": ("3", "allgather:hamiltonian", {"flits": 2}, {"width": 4, "bus": "axi-lite"}),
    "AXI4": ("3", "allgather:hamiltonian", {"flits": 2}, {"width": 4, "bus": "axi4"}),
}  # fmt: skip

#: Seconds after which a simulation or a proof of a mutant is stopped, and a comparison by Yosys.
PATIENCE, LONGER = 180, 600

#: Scripts of Yosys. EQUIVALENCE prepares one version of a module; COMPARISON proves that the
#: outputs of both versions are equal.
EQUIVALENCE = """
read_verilog -sv {file}
prep -flatten -top {top}
async2sync
memory_map
opt -full -share_all
rename {top} {name}
design -stash {name}
"""
COMPARISON = """
design -copy-from gold gold
design -copy-from gate gate
equiv_make gold gate both
cd both
equiv_simple -undef -seq 3
equiv_induct -undef -seq 3
equiv_status -assert
"""


class Outcome(NamedTuple):
    """The result of one mutant.

    Parameters
    ----------
    fabric : str
        Kind of the fabric.
    seed, number : int
        Seed of the random mutations, and number of the mutation among them.
    kind, place : str
        Kind of the mutation, and the changed place in the netlist.
    simulation, proof : str
        Difference that simulation and proof have noticed, in words; empty if none.
    equivalent : bool or None
        True if Yosys proves the mutant equivalent to the original; None without a try, because
        simulation or proof has noticed the mutant.
    """

    fabric: str
    seed: int
    number: int
    kind: str
    place: str
    simulation: str
    proof: str
    equivalent: bool | None

    @property
    def noticed(self) -> bool:
        """True if simulation or proof has noticed the mutant."""
        return bool(self.simulation or self.proof)


@cache
def hardware(kind: str) -> Any:
    """Return the fabric of a kind, or the system of boards."""
    topology, collectives, options, settings = (FABRICS | OTHERS)[kind]
    plans = [tf.plan(topology, name) for name in collectives.split(",")]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **options)
    fabric = tf.Fabric(program, **({"width": 3} | settings))
    if kind == "boards":
        return BoardSystem(fabric, Boards.parse("2", topology))
    return fabric


@cache
def simulated(kind: str) -> list[Any]:
    """Return the fabrics of a kind that are simulated; the first is proved as well.

    A kind with loaded tables has two: the fabric with constant tables, and the fabric with its
    empty RAM, which an image fills.
    """
    whole = hardware(kind)
    if kind == "boards" or not whole.room:
        return [whole]
    return [with_constant_tables(whole), tf.Fabric.holding(whole.image, empty=True)]


@cache
def mutants(kind: str, count: int, seed: int) -> list[Mutation]:
    """Return random mutations of the fabric of a kind."""
    first = simulated(kind)[0]
    netlist = first.netlists[0] if kind == "boards" else first.netlist
    with_bus = kind != "boards" and first.bus
    found: list[Mutation] = sampled(netlist, count, seed, of="bus_bridge" if with_bus else "")
    return found


def design_of(whole: Any) -> Design:
    """Return the emitted Verilog."""
    return emit_boards(whole) if isinstance(whole, BoardSystem) else tf.emit(whole)


def seen_by_simulation(whole: Any) -> str:
    """Return the difference that a simulation of some runs notices; empty if none."""
    if isinstance(whole, BoardSystem):
        # The second simulation has link errors, because of which runs are repeated.
        runs = (simulate_boards(whole, jobs=8, link_errors=rate) for rate in (0.0, 0.02))
        return "" if all(run.passed for run in runs) else "words or cycles"
    if whole.bus:
        return ""
    if whole.top == Top.CORE:
        check_core(whole, root=whole.nodes - 2 if whole.program.any_root else None)
        return ""
    stall = 0.3 if whole.top == Top.STREAM else None
    return "" if tf.simulate(whole, stall=stall).passed else "words or cycles"


def seen_by_proof(kind: str, design: Design) -> str:
    """Return the module and the signal that the proof refutes; empty if the proof holds."""
    whole, of = hardware(kind), prove_boards if kind == "boards" else prove
    wrong = of(whole, design=design, cache=Cache()).counterexample
    return f"{wrong.module}, {wrong.signal}" if wrong else ""


def carry_out(kind: str, count: int, seed: int, number: int) -> Outcome:
    """Simulate and prove a mutant; if neither notices it, let Yosys check the equivalence."""
    mutation = mutants(kind, count, seed)[number]
    tried = [with_netlist(each, mutation.change) for each in simulated(kind)]
    simulation = noticed(lambda: next(filter(None, map(seen_by_simulation, tried)), ""))
    proof = noticed(lambda: seen_by_proof(kind, design_of(tried[0])))
    equivalent = None
    if not simulation and not proof:
        plain, mutant = simulated(kind)[0], tried[0]
        equivalent = noticed(lambda: compare(design_of(plain), design_of(mutant)), LONGER) == ""
    return Outcome(kind, seed, number, mutation.kind, mutation.place, simulation, proof, equivalent)


def noticed(look: Callable[[], str], patience: int = PATIENCE) -> str:
    """Return the result of a check, or its exception in words.

    A check that takes longer than `patience` seconds, or that refuses the mutant, has noticed it.
    """

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no end in {patience} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(patience)
    try:
        return look()
    except (AssertionError, InputError, WorkFailed, TimeoutError) as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    except Exception as error:  # a mutation may make a netlist that cannot be simulated
        return f"crash: {error!r}"
    finally:
        signal.alarm(0)


def compare(gold: Design, gate: Design) -> str:
    """Raise `WorkFailed` unless Yosys proves all changed modules of two designs equivalent."""
    changed = [name for name, text in gold.modules.items() if gate.modules[name] != text]
    with work_folder("mutants") as folder:
        for name, design in (("gold", gold), ("gate", gate)):
            (folder / f"{name}.v").write_text(design.text, encoding="utf-8")
        for top in changed:
            script = "design -reset".join(
                EQUIVALENCE.format(file=f"{name}.v", top=top, name=name)
                for name in ("gold", "gate")
            )
            (folder / "script.ys").write_text(script + COMPARISON, encoding="utf-8")
            tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log",
                      what="a mutant")  # fmt: skip
    return ""


def shares(found: Sequence[Outcome], by: str, names: Sequence[str]) -> Table:
    """Return the table of shares that are noticed, by kind of fabric or of mutation."""
    table = Table(title=f"mutants noticed by {by}")
    for head in (by, "mutants", "simulation", "proof", "either", "equivalent", "survive"):
        table.add_column(head, justify="left" if head == by else "right")
    for name in [*names, "all"]:
        mine = [each for each in found if name in (getattr(each, by), "all")]
        if not mine:
            continue
        counts = [
            sum(bool(each.simulation) for each in mine),
            sum(bool(each.proof) for each in mine),
            sum(each.noticed for each in mine),
        ]
        equivalent = sum(bool(each.equivalent) for each in mine)
        words = [f"{count} ({count / len(mine):.0%})" for count in counts]
        left = len(mine) - counts[2] - equivalent
        table.add_row(name, str(len(mine)), *words, str(equivalent), str(left))
    return table


def survivors(found: Sequence[Outcome]) -> list[Outcome]:
    """Return the mutants that neither check has noticed and that are not proved equivalent."""
    return [each for each in found if not each.noticed and not each.equivalent]


def outcomes(tasks: Sequence[tuple[str, int, int, int]], jobs: int) -> Iterator[Outcome]:
    """Yield the result of each mutant, with the work shared among some processes."""
    if jobs == 1:
        yield from (carry_out(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(carry_out, *zip(*tasks, strict=True))


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kinds", metavar="KIND,..", default=",".join(FABRICS), help="fabrics, or all"
    )
    parser.add_argument("--count", type=int, default=320, help="mutants in all (default 320)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("--mutant", metavar="KIND:SEED:NUMBER", help="this one alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main() -> int:
    """Make mutants, and print the checks that notice them; return the exit status."""
    arguments = parse()
    known = FABRICS | OTHERS
    kinds = [*known] if arguments.kinds == "all" else arguments.kinds.split(",")
    for kind in kinds:
        if kind not in known:
            raise InputError(f"Kind must be all, or one of {', '.join(known)}, not {kind!r}")
    each, more = divmod(arguments.count, len(kinds))
    tasks = [
        (kind, each + (place < more), arguments.seed, number)
        for place, kind in enumerate(kinds)
        for number in range(len(mutants(kind, each + (place < more), arguments.seed)))
    ]
    if arguments.mutant:
        kind, seed, number = arguments.mutant.split(":")
        tasks = [(kind, int(number) + 1, int(seed), int(number))]
    found = []
    with progress_bar("mutants") as progress:
        for outcome in outcomes(tasks, arguments.jobs):
            found.append(outcome)
            progress(len(found), len(tasks), f"{outcome.fabric}, {outcome.kind}")
    left = survivors(found)
    status = 2 if left else 0
    if arguments.json:
        print_json({"mutants": [each._asdict() for each in found], "status": status})
        return status
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(shares(found, "fabric", kinds))
    console.print(shares(found, "kind", KINDS))
    for title, listed in (
        ("survivors", left),
        ("equivalent", [each for each in found if each.equivalent]),
        ("of which the proof crashes", [each for each in found if "crash" in each.proof]),
    ):
        console.print(f"{title}: {len(listed)}")
        for each in listed:
            console.print(f"  {each.fabric}:{each.seed}:{each.number} {each.kind}: {each.place}",
                          *[f"({each.proof})"] * ("crash" in each.proof))  # fmt: skip
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"hardware_mutants: {error}", file=sys.stderr)
        sys.exit(1)
