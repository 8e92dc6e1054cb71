"""Speed of the simulation engines, on all-gathers along Hamiltonian cycles with all their hardware.

Routers, endpoints and host port are simulated. Each row is measured in a process of its own, with
an empty cache. The columns, times in seconds:

    build          time until the first run can start
    processor      processor time of the build
    node cycles/s  cycles from start to done, times nodes, in a second of processor time
    whole          time to load, run and read one collective, with all words compared
    even           cycles after which the build has paid, compared with Amaranth's simulator
    MB             memory of the process

"icarus" and "verilator" are Icarus Verilog and Verilator on the emitted Verilog, without a
comparison of words.

A second table compares the compiled engine with these two, on one thread and on two. Runs alternate
in pairs. Why: the speed of a shared machine drifts, and a pair shares the drift. "ratio" is the
speed of the compiled engine over the speed of the other, the median of all pairs; "least" and
"most" are the extremes. Icarus Verilog always has one thread. A measurement that takes longer than
--bound, build included, is reported as late. No new pair begins after half of this time.

    python sim/engine_speed.py
    python sim/engine_speed.py 8x8 16x16 32x32 --times 2 --pairs 6

The page about simulators shows the figures of these commands on an idle machine:

    python sim/engine_speed.py 4x4 8x8 16x16 --engines compiled icarus verilator --pairs 2 --json
    python sim/engine_speed.py 3x3 4x4 --engines amaranth --pairs 0 --json
"""

import argparse
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from icarus_engine import Icarus
from verilator_engine import Verilator

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, print_table, progress_bar
from torusfabric.collective import random_messages
from torusfabric.simulation.engines import ENGINES, CompiledEngine, Engine

#: Simulators of the emitted Verilog.
OF_TEXT = {"icarus": Icarus, "verilator": Verilator}

#: All simulators that are measured, by name.
MEASURED = ENGINES | OF_TEXT

#: Node cycles of one measurement, by engine.
MEASURED_CYCLES = {"amaranth": 3e4, "compiled": 2e7, "icarus": 1e5, "verilator": 5e6}

#: Most runs of one measurement, and runs in one call of a torusfabric engine.
MOST_RUNS, TOGETHER = 10_000, 16

#: Numbers of threads on which the compiled engine is compared with others.
THREADS = (1, 2)

#: Share of ``--bound`` after which no further pair begins.
FOR_PAIRS = 0.5

#: Most words that Amaranth's simulator loads and reads through the host port in acceptable time.
MANY_WORDS = 100_000


def measure(sides, engine, width):
    """Build, time and run one engine; return the figures by name.

    "whole" is None for a simulator of the emitted Verilog, and for Amaranth's simulator on a fabric
    with more than `MANY_WORDS` words to read.
    """
    fabric = fabric_of(sides, width)
    began, used = time.perf_counter(), processor_time()
    # An engine that expects few runs spends less time on its build, and is slower.
    many = {"repeat": MOST_RUNS} if engine in ENGINES else {}
    made = MEASURED[engine](fabric, **many)
    build, used = time.perf_counter() - began, processor_time() - used
    cycles, spent = timed(made, runs_of(fabric, engine))
    whole, few = None, fabric.nodes * fabric.layout.recv_words <= MANY_WORDS
    if isinstance(made, Engine) and (few or engine != "amaranth"):
        report = tf.simulate(fabric, engine=made)
        assert report.passed, report.first_wrong
        whole = report.seconds
    return {
        "topology": sides,
        "engine": engine,
        "build": round(build, 2),
        "build_processor": round(used, 2),
        "cycles_per_second": cycles / spent,
        "node_cycles_per_second": round(fabric.nodes * cycles / spent),
        "whole": whole,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load": os.getloadavg()[0],
    }


def timed(made, runs):
    """Return the cycles of at least `runs` runs, and the seconds that they took.

    Loading and reading of words is not timed.
    """
    if not isinstance(made, Engine):
        return made.measure(runs)
    fabric = made.fabric
    words = random_messages(fabric.program.layout, fabric.flits, width=fabric.width, seed=1)
    found = []
    for _ in range(0, runs, TOGETHER):
        found += [(run.edges, run.seconds) for run in made.run_many([words] * TOGETHER)]
    return tuple(map(sum, zip(*found, strict=True)))


def fabric_of(sides, width):
    """Return the fabric that is measured: an all-gather along Hamiltonian cycles."""
    schedule = tf.plan(sides, "allgather", algorithm="hamiltonian")
    return tf.Fabric(tf.compile(schedule), width=width)


def runs_of(fabric, engine):
    """Return the number of runs of one measurement.

    The number is limited because each run is called from Python, which takes longer than a run of a
    small torus.
    """
    runs = MEASURED_CYCLES[engine] / (fabric.nodes * fabric.predicted_cycles)
    return int(min(max(1, runs), MOST_RUNS))


def compare(sides, other, width, pairs, threads, until):
    """Compare the compiled engine with another simulator in pairs of measurements.

    Parameters
    ----------
    sides : str
        Topology of the fabric.
    other : str
        "icarus" or "verilator".
    width : int
        Bits of a flit.
    pairs : int
        Most pairs.
    threads : int
        Threads of the compiled engine and of Verilator.
    until : float
        Time by `time.time` after which no pair begins; the first pair always runs.
    """
    fabric = fabric_of(sides, width)
    ours = CompiledEngine(fabric, threads=threads, repeat=MOST_RUNS)
    theirs = Icarus(fabric) if other == "icarus" else Verilator(fabric, threads=threads)
    ratios: list[float] = []
    while not ratios or (len(ratios) < pairs and time.time() < until):
        (cycles, seconds), (others, spent) = (
            timed(made, runs_of(fabric, name))
            for name, made in (("compiled", ours), (other, theirs))
        )
        ratios.append(cycles / seconds / (others / spent))
    return {
        "topology": sides,
        "engine": other,
        "threads": threads,
        "pairs": len(ratios),
        "ratio": statistics.median(ratios),
        "load": os.getloadavg()[0],
        "least": min(ratios),
        "most": max(ratios),
    }


def processor_time():
    """Return the seconds of processor time of this process and of its finished child processes."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def in_process(sides, engine, arguments, pairs=0, threads=1):
    """Measure in a new process with an empty cache; return its figures, or None after the bound.

    Without pairs the process measures one engine. With pairs it compares the compiled engine with
    `engine`.
    """
    with tempfile.TemporaryDirectory(prefix="engine-speed-") as cache:
        command = [sys.executable, __file__, sides, "--width", str(arguments.width),
                   "--only", engine, "--pairs", str(pairs), "--threads", str(threads),
                   "--bound", str(arguments.bound)]  # fmt: skip
        environ = os.environ | {"TORUSFABRIC_CACHE": cache, "TMPDIR": cache}
        process = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            written, _ = process.communicate(timeout=arguments.bound)
        except subprocess.TimeoutExpired:
            # The signal reaches the child processes, too: the process leads a group of its own.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(written)


def with_break_even(rows):
    """Add to each row the cycles after which the time of its build has paid.

    The reference is Amaranth's simulator on the same topology; without it "even" is None.
    """
    slow = {row["topology"]: row for row in rows if row["engine"] == "amaranth"}
    for row in rows:
        reference = slow.get(row["topology"])
        row["even"] = None
        if reference and row is not reference:
            gain = 1 / reference["cycles_per_second"] - 1 / row["cycles_per_second"]
            row["even"] = max(
                0, round((row["build_processor"] - reference["build_processor"]) / gain)
            )
    return rows


def in_short(number):
    """Return a number with three digits, in thousands (k) or millions (M)."""
    power, unit = (1e6, "M") if number >= 1e6 else (1e3, "k")
    return f"{number / power:.3g} {unit}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sides", nargs="*", default=["8x8", "16x16"], metavar="SIDES")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--times", type=int, default=1, help="measurements of each row")
    parser.add_argument("--pairs", type=int, default=4, help="of ours and each other; 0 for none")
    parser.add_argument("--engines", nargs="+", choices=list(MEASURED), default=list(MEASURED))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bound", type=float, default=300, help="seconds of a row (default 300)")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        chosen = arguments.sides[0], arguments.only, arguments.width
        if arguments.pairs:
            until = time.time() + arguments.bound * FOR_PAIRS
            print_json(compare(*chosen, arguments.pairs, arguments.threads, until))
        else:
            print_json(measure(*chosen))
        return
    todo = [(sides, engine) for sides in arguments.sides for engine in arguments.engines]
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    late: list[tuple[str, str]] = []
    with print_notices(), progress_bar("measuring") as progress:
        for _ in range(arguments.times):
            found: list[dict[str, Any]] = []
            for sides, engine in todo:
                done = len(rows) + len(found)
                progress(done, len(todo) * arguments.times, f"{engine} on {sides}")
                row = in_process(sides, engine, arguments)
                late += [] if row else [(sides, engine)]
                found += [row] if row else []
            rows += with_break_even(found)
        beside = [(*each, threads) for each in todo if each[1] in OF_TEXT and each not in late
                  for threads in THREADS] if arguments.pairs else []  # fmt: skip
        for done, (sides, engine, threads) in enumerate(beside):
            progress(done, len(beside), f"ours beside {engine} on {sides}")
            row = in_process(sides, engine, arguments, arguments.pairs, threads)
            late += [] if row else [(sides, f"{engine} on {threads} threads")]
            pairs += [row] if row else []
    if arguments.json:
        all_of_it: dict[str, Any] = {"about": about([*rows, *pairs]), "rows": rows}
        all_of_it |= {"pairs": pairs, "late": late, "bound": arguments.bound}
        print_json(all_of_it)
        return
    show(rows, pairs)
    print(about([*rows, *pairs]))
    for sides, engine in dict.fromkeys(late):
        print(f"{engine} on {sides}: not built and run within {arguments.bound:g} s")


def about(measured):
    """Return a line about the machine: processors, largest load and architecture."""
    load = max((row["load"] for row in measured), default=0)
    return f"{os.cpu_count()} processors, load at most {load:.1f}, {platform.machine()}"


def show(rows, pairs):
    """Print the tables of rows and of pairs."""
    print_table(
        ("torus", "engine", "build", "processor", "node cycles/s", "whole", "even", "MB", "load"),
        [
            (row["topology"], row["engine"], row["build"], row["build_processor"],
             in_short(row["node_cycles_per_second"]),
             "" if row["whole"] is None else row["whole"],
             "" if row["even"] is None else row["even"], row["megabytes"],
             round(row["load"], 1))
            for row in rows
        ],
    )  # fmt: skip
    print_table(
        ("torus", "beside", "threads", "pairs", "ratio", "least", "most"),
        [
            (row["topology"], row["engine"], row["threads"], row["pairs"],
             *(f"{row[name]:.3g}" for name in ("ratio", "least", "most")))
            for row in pairs
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
