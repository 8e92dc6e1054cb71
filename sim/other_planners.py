"""Other planners and torusfabric: all-gathers by TACOS, and the algorithms that MSCCL publishes.

TACOS (W. Won, M. Elavazhagan, S. Srinivasan, S. Gupta, T. Krishna, "TACOS: Topology-Aware
Collective Algorithm Synthesizer for Distributed Machine Learning", MICRO 2024) searches at random.
Its steps are the steps of the best of some tries, measured with its unchanged library
(github.com/astra-sim/tacos, g++ -O2, one core of a comparable machine). It plans all-gathers, no
all-to-all, and gives steps, no hardware. "ours" is planned here by `matching`; the time excludes
the check.

The algorithms of MSCCL are those of github.com/microsoft/msccl-tools: rings, recursive doubling and
halving, rows and columns. `msccl_generators` writes them anew as MSCCL files. They are imported,
list-scheduled onto a torus, built and simulated, with every word compared. Beside them stands the
best plan of torusfabric for the same collective and length. (The time of MSCCL's own solver is not
comparable: its README quotes 0.7 s for an all-gather of 4 steps on the 8 GPUs of a DGX-1.) Cycles
are clock cycles of the hardware from start to done.

    python sim/other_planners.py
    python sim/other_planners.py --largest 16 --flits 8
"""

import argparse
import tempfile
import time
from pathlib import Path

import msccl_generators as generators
from hardware_cycles import simulated_cycles

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.planning.foreign import best_own_schedule

#: All-gathers of one chunk by TACOS: steps of its best try, number of tries, and seconds of a try.
TACOS = {
    "3x3": (2, 1000, None),
    "4x4": (4, 20, 0.001),
    "5x5": (7, 5000, 0.001),
    "6x7": (11, 20, 0.005),
    "7x7": (13, 2000, 0.008),
    "8x8": (17, 200, 0.014),
    "9x9": (21, 30, 0.03),
    "10x10": (26, 30, 0.07),
    "16x16": (65, 2, 1.4),
    "3x3x3": (5, 10, 0.001),
    "4x4x4": (11, 10, 0.013),
    "5x5x5": (21, 10, 0.08),
    "7x7x7": (58, 1, 2.8),
    "8x8x8": (86, 1, 9.4),
}

#: Algorithms that MSCCL publishes: torus, map of ranks to nodes, and text of the file.
PUBLISHED = [
    ("5", "identity", generators.ring_allreduce(5)),
    ("8", "identity", generators.ring_allgather(8)),
    ("2x4", "auto", generators.ring_allgather(8)),
    ("3x3", "identity", generators.hierarchical_allgather(3, 3)),
    ("8", "identity", generators.ring_allreduce(8)),
    ("2x4", "gray", generators.halving_doubling_allreduce(8)),
    ("4x4", "gray", generators.recursive_doubling_allgather(16)),
    ("4x4", "gray", generators.halving_reduce_scatter(16)),
    ("4x4", "gray", generators.halving_doubling_allreduce(16)),
    ("4x4", "identity", generators.hierarchical_allgather(4, 4)),
    ("4x4x4", "gray", generators.recursive_doubling_allgather(64)),
    ("8x8", "identity", generators.hierarchical_allgather(8, 8)),
]


def tacos_row(name, figures):
    """Return steps and seconds of TACOS and of torusfabric for one torus."""
    steps, tries, seconds = figures
    began = time.process_time()
    ours = tf.plan(name, "allgather", algorithm="matching", check=False)
    mine = time.process_time() - began
    return {
        "torus": name,
        "bound": tf.bound(ours),
        "ours": ours.steps,
        "seconds": round(mine, 3),
        "tacos": steps,
        "tries": tries,
        "seconds a try": seconds,
    }


def published_row(torus, placement, text, flits):
    """Return steps and cycles of a published algorithm and of the best own plan, on one torus."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.xml"
        path.write_text(text)
        schedule = tf.import_schedule(path, torus, placement=placement)
    tf.check(schedule)
    ours = best_own_schedule(schedule)
    assert ours is not None
    # Both schedules can cut a message of this length into blocks of whole flits.
    length = flits * max(schedule.chunks, ours.chunks)
    return {
        "torus": torus,
        "algorithm": schedule.algorithm,
        "flits": length,
        "bound": tf.bound(schedule),
        "steps": schedule.steps,
        "cycles": simulated_cycles(schedule, length, width=32),
        "ours": ours.algorithm,
        "our steps": ours.steps,
        "our cycles": simulated_cycles(ours, length, width=32),
    }


def print_rows(title, rows):
    """Print a table."""
    print(f"{title}\n")
    if rows:
        widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in rows[0]}
        print("  ".join(f"{name:>{width}}" for name, width in widths.items()))
        for row in rows:
            cells = ("-" if row[name] is None else row[name] for name in widths)
            columns = zip(cells, widths.values(), strict=True)
            print("  ".join(f"{cell:>{width}}" for cell, width in columns))
    print()


def main():
    """Print the tables, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--largest", type=int, default=64, help="nodes that are simulated at most")
    parser.add_argument("--planned", type=int, default=512, help="nodes that are planned at most")
    parser.add_argument("--flits", type=int, default=4, help="flits of a block (default 4)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    nodes = lambda name: tf.parse_topology(name).nodes
    chosen = [case for case in TACOS.items() if nodes(case[0]) <= arguments.planned]
    cases = [case for case in PUBLISHED if nodes(case[0]) <= arguments.largest]
    total = len(chosen) + len(cases)
    with print_notices(), progress_bar("other planners") as progress:
        tacos: list[dict[str, object]] = []
        for name, figures in chosen:
            progress(len(tacos), total, name)
            tacos.append(tacos_row(name, figures))
        published: list[dict[str, object]] = []
        for torus, placement, text in cases:
            progress(len(tacos) + len(published), total, torus)
            published.append(published_row(torus, placement, text, arguments.flits))
    if arguments.json:
        print_json({"tacos": tacos, "published": published})
        return
    print_rows("All-gather of one chunk, steps: TACOS and ours", tacos)
    print_rows("Algorithms of MSCCL, imported and simulated, and ours", published)


if __name__ == "__main__":
    main()
