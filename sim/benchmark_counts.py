"""Exact counts of one commit: clock cycles, LUTs, flip-flops and memories; and clock frequencies.

`benchmarks.py` compares these counts with the counts kept in ``sim/measured/counts.json``, or with
the counts of another commit. A larger count is worse; a count has no noise. Counts of hardware
depend on the version of Yosys, which is kept beside them.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torusfabric as tf
from torusfabric.analysis.volume import cycle_limit
from torusfabric.toolchain import tools

#: Counts by name.
Counts = dict[str, int]

#: Progress callback: steps done, steps in all, and the name of the present step.
Progress = Callable[[int, int, str], object]

TORI = ("4x4", "8x8", "5x7", "6x4", "4x4x4", "7x7x7")

COLLECTIVES = ("broadcast", "scatter", "gather", "allgather", "alltoall", "reduce",
               "reduce-scatter", "allreduce")  # fmt: skip

#: Message lengths in flits.
LENGTHS = (1, 4, 16, 64, 256)


class Hardware(NamedTuple):
    """A fabric that is synthesized for ECP5, without place and route.

    Parameters
    ----------
    name : str
        Name of the fabric in tables and in ``counts.json``.
    command : str
        Arguments of `torusfabric synth` and `torusfabric verilog`.
    cycles : int
        Cycles by which its longest run may exceed the longest run of another commit.
    """

    name: str
    command: str
    cycles: int = 0


#: Modes of two engines. Why algorithms are named: counts stay comparable with the first ones.
FOUR = ("allgather:hamiltonian,alltoall:matching,allreduce:spanning-tree,"
        "broadcast:spanning-tree")  # fmt: skip
EIGHT = ("broadcast:spanning-tree,scatter:farthest-first,gather:farthest-first,"
         "allgather:hamiltonian,alltoall:matching,reduce:spanning-tree,"
         "reduce-scatter:hamiltonian,allreduce:spanning-tree")  # fmt: skip

#: Memory rules are fixed, so that counts of LUTs stay comparable. The rule auto:1 leaves all
#: memories to the tool.
HARDWARE = (
    Hardware("wires", "8x8 allgather:hamiltonian --width 32 --ram auto:1"),
    Hardware("wires with streams",
             "4x4 allgather:hamiltonian --width 32 --top stream --ram auto:1", 2),
    Hardware("tables", "8x8 allgather:bufferless --width 32 --ram auto:1"),
    Hardware("circuits", "4x4 broadcast:max-flow --width 32 --ram auto:1"),
    Hardware("operators", "4x4 allreduce --width 16 --ram auto:1"),
    Hardware("engine of four", f"4x4 {FOUR} --width 16 --max-flits 4 --ram auto:1"),
    Hardware("engine of eight", f"4x4 {EIGHT} --width 8 --max-flits 4 --ram auto:1"),
    Hardware("two with streams",
             "4x4 allgather,alltoall --top stream --width 32 --max-flits 16 "
             "--ram auto:16,block", 2),
    Hardware("loaded with room",
             "4x4 allgather,allreduce --tables ram --rows 64 --inputs all --width 32 "
             "--max-flits 16 --ram auto:8,block", 2),
    Hardware("any root",
             "4x4 broadcast,scatter --root any --width 16 --max-flits 16 --ram auto:2,block", 2),
    Hardware("AXI4", "4x4 allreduce --bus axi4 --width 32 --max-flits 16 --ram auto:2,block"),
    Hardware("wires of a core",
             "4x4 allgather:hamiltonian --top core --width 32 --flits 2 --ram auto:1"),
    Hardware("loaded with streams",
             "4x4 allgather,allreduce --top stream --tables ram --beat 1 --width 16 "
             "--max-flits 8 --ram auto:4,block", 2),
    Hardware("three dimensions", "4x4x4 reduce --width 16 --max-flits 16 --ram auto:1"),
    Hardware("forms of any root",
             "8x8 reduce --root any --width 16 --max-flits 64 --ram auto:15,block", 2),
    Hardware("memories that fit", "8x8 allgather:hamiltonian --width 32 --flits 4"),
)  # fmt: skip

#: Device for which these fabrics are synthesized.
DEVICE = "ecp5-85k"

#: Tori of the page "What it costs": each collective in a fabric of its own.
COST_TORI = ("4x4", "8x8")

#: Arguments of the commands of that page.
COST_OPTIONS = "--width 32 --flits 4"

#: Costs of a fabric on that page: name -> key of `torusfabric compare`.
COST_KEYS = {"LUTs": "luts", "FFs": "ffs", "block RAMs": "brams", "memory bits": "memory_bits",
             "GE": "gates", "cycles": "cycles"}  # fmt: skip


class Clock(NamedTuple):
    """A whole fabric whose clock is measured, by place and route.

    Parameters
    ----------
    name : str
        Name of the fabric in tables. It begins with the kind of the fabric.
    command : str
        Arguments of `torusfabric synth` that describe the fabric.
    goal : int
        Clock in MHz that the fabric should reach.
    ram : str
        Rule for memories. Why LUT RAM: a block RAM alone takes 5.8 ns.
    """

    name: str
    command: str
    goal: int
    ram: str = "registers:2,distributed"

    @property
    def synthesis(self) -> str:
        """Arguments of `torusfabric synth`."""
        return f"{self.command} --ram {self.ram} --target {CLOCK_DEVICE}"


#: Device on which these fabrics are placed.
CLOCK_DEVICE = "ecp5-25k"

#: Whole fabrics whose clock is measured: *wires* have one input per out-port, *tables* several, and
#: *engines* serve several collectives.
WHOLE = (
    Clock("wires", "4x4 allgather:hamiltonian --width 32 --flits 2", 280),
    Clock("wires, 8x8", "8x8 allgather:hamiltonian --width 4", 280),
    Clock("wires with streams",
          "3x3 allgather:hamiltonian --width 8 --flits 4 --top stream", 280),
    Clock("wires behind AXI4-Lite",
          "4x4 allgather:hamiltonian --width 16 --flits 2 --bus axi-lite", 280),
    Clock("tables, matching", "4x4 alltoall:matching --width 8", 250),
    Clock("tables, bufferless", "4x4 allgather:bufferless --width 16", 250),
    Clock("engine of two", "3x3 allgather,alltoall --width 8 --max-flits 4", 220),
    Clock("engine of three", "3x3 allgather,alltoall,allreduce --width 8 --max-flits 4", 220,
          ram="distributed"),
    Clock("engine of two with streams",
          "3x3 allgather,alltoall --width 8 --max-flits 4 --top stream", 220, ram="distributed"),
    Clock("engine of two, loaded",
          "4 allgather,allreduce --width 8 --max-flits 4 --tables ram --rows 16 --inputs all",
          220, ram="distributed"),
)  # fmt: skip

#: Arguments of `torusfabric synth` for all fabrics whose clock is measured: those of `WHOLE`, and
#: those of the page "What it costs".
CLOCKS = {case.name: case.synthesis for case in WHOLE} | {
    f"4x4 {name}": f"4x4 {name} {COST_OPTIONS} --target {DEVICE}"
    for name in ("broadcast", "scatter", "gather", "reduce", "allreduce")
}

#: CLOCK_NOISE: share by which another placement alone may lower a clock frequency.
#: PLACEMENTS: placements of each fabric; the median of their clock frequencies counts.
CLOCK_NOISE, PLACEMENTS = 0.1, 3


class Program(NamedTuple):
    """The command line of this checkout, or of another commit.

    Parameters
    ----------
    words : tuple of str
        Words of a command in front of its arguments.
    path : str or None
        Folder from which Python imports the package; None for an installed package.
    """

    words: tuple[str, ...]
    path: str | None = None

    def run(self, arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in an empty folder; ``OUT`` in the arguments stands for this folder."""
        with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
            words = arguments.replace("OUT", folder).split()
            # Python may write compiled files, so that only the first run of a commit compiles.
            left_out = "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"
            environ = {key: v for key, v in os.environ.items() if key not in left_out}
            if self.path:
                environ["PYTHONPATH"] = self.path
            return subprocess.run(
                [*self.words, *words],
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )

    def report(self, arguments: str) -> dict[str, Any] | None:
        """Return the object that a command prints with ``--json``, or None if the command fails."""
        done = self.run(f"{arguments} --json")
        return None if done.returncode else json.loads(done.stdout)


#: The command line of this checkout.
HERE = Program((sys.executable, "-m", "torusfabric"), str(Path(__file__).resolve().parent.parent))


def count_cycles(progress: Progress) -> Counts:
    """Return the cycles of the plan that `tf.plan` chooses, by torus, collective and length."""
    found: Counts = {}
    cases = [(torus, collective) for torus in TORI for collective in COLLECTIVES]
    for done, (torus, collective) in enumerate(cases):
        progress(done, len(cases), f"{torus} {collective}")
        for length in LENGTHS:
            found[f"{torus} {collective} {length}"] = cycles_of(torus, collective, length)
    return found


def cycles_of(torus: str, collective: str, length: int) -> int:
    """Return the cycles of the plan that `tf.plan` chooses for messages of `length` flits."""
    return tf.compile(tf.plan(torus, collective, flits=length), flits=length).cycles()


def limits() -> Counts:
    """Return the cycle limit of each case of `count_cycles`."""
    return {
        f"{torus} {collective} {length}": cycle_limit(
            tf.parse_topology(torus), tf.parse_collective(collective), length
        )
        for torus in TORI
        for collective in COLLECTIVES
        for length in LENGTHS
    }


def count_hardware(progress: Progress, program: Program = HERE) -> Counts:
    """Return cost and cycles of the fabrics in `HARDWARE`, by the program of one commit.

    Each fabric has five counts: LUTs, flip-flops and block RAMs of the whole, LUTs of the largest
    router, and cycles of the longest run. A fabric whose commands fail has none.
    """
    found: Counts = {}
    for done, case in enumerate(HARDWARE):
        progress(done, len(HARDWARE), case.name)
        report = program.report(f"synth {case.command} --target {DEVICE}")
        made = program.report(f"verilog {case.command} -o OUT/v")
        if report and made:
            fabric = report["fabric"]
            found[f"{case.name}, LUTs"] = fabric["luts"]
            found[f"{case.name}, FFs"] = fabric["ffs"]
            found[f"{case.name}, block RAMs"] = fabric["brams"]
            routers = [row["luts"] for row in report["classes"]]
            found[f"{case.name}, LUTs of a router"] = max(routers, default=0)
            found[f"{case.name}, cycles"] = made["predicted_cycles"]
    return found


def count_costs(progress: Progress, program: Program = HERE) -> Counts:
    """Return the costs of each collective on `COST_TORI`, by the program of one commit.

    A torus whose command fails has none.
    """
    found: Counts = {}
    for done, torus in enumerate(COST_TORI):
        progress(done, len(COST_TORI), torus)
        report = program.report(f"compare {torus} all {COST_OPTIONS} --target {DEVICE},asic")
        for row in report["collectives"] if report else ():
            fabric = f"{torus} {row['collective']}"
            found |= {f"{fabric}, {name}": row[key] for name, key in COST_KEYS.items()}
    return found


def measure_clocks(progress: Progress, program: Program = HERE) -> dict[str, float]:
    """Return the clock frequencies of the fabrics in `CLOCKS` in MHz, by one commit's program."""
    found = {}
    for done, (name, command) in enumerate(CLOCKS.items()):
        progress(done, len(CLOCKS), name)
        report = program.report(f"synth {command} --pnr --seeds {PLACEMENTS}")
        if report:
            found[f"{name}, MHz"] = report["fabric"]["fmax_mhz"]
    return found


def yosys() -> str:
    """Return the version of Yosys."""
    return tools.version("yosys")
