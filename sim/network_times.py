"""Message times of all collectives on any network, beside their lower bounds.

Networks are tori with broken links or nodes, meshes, cubes, circulants, twisted tori. Each row has
the message times of the plan for long messages, their bound, and their ratio ("above"). The ratio
may be 1.03; for an all-to-all 1.10; for an all-reduce, which streams over trees that share no link,
1.04. "late" are the steps beyond the load of the busiest arc and the length of the longest path; 4
are allowed. Rows that exceed either are printed again at the end.

    python sim/network_times.py
    python sim/network_times.py --networks mesh:8x8 16x16!0:+0 --collectives allreduce
"""

import argparse
import sys
import time

import torusfabric as tf
from torusfabric.analysis.cost import schedule_cost
from torusfabric.analysis.link_use import measure_link_use
from torusfabric.analysis.volume import least_path_length, least_time
from torusfabric.cli.output import print_json, print_notices, progress_bar

#: Tori with one to three broken links (at one node, at several, in one direction) or with broken
#: nodes, and other networks.
NETWORKS = (
    *("4x4!0:+0", "4x4!0:+0,0:-0", "4x4!5:-1,10", "5x5!0:+0", "5x5!0:+0,7:+1,18:-0", "4x4!10"),
    *("6x6!0:+0", "6x6!14", "4x8!3:+1,20:-0", "8x8!0:+0", "8x8!0:+0,9:+1,36:-0", "8x8!9"),
    *("4x4x4!0:+0", "4x4x4!3", "4x4!0:+0:out", "mesh:4x4", "mesh:4x6", "mesh:8x8", "mesh:3x3x3"),
    *("4|x4", "cube:4!0:1", "cube:5", "circulant:16:1,4", "circulant:13:1,5!4", "8x4~2", "4~4x8"),
)
COLLECTIVES = (
    *("broadcast", "reduce", "allgather", "reduce-scatter", "allreduce", "scatter", "gather"),
    "alltoall",
)

#: Largest ratio to the bound of two collectives (1.03 for all others), and most steps late.
ALIKE, LATE = {"alltoall": 1.10, "allreduce": 1.04}, 4


def row(name: str, collective: str) -> dict[str, object]:
    """Return the figures of the plan for one collective on one network."""
    topology = tf.parse_topology(name)
    began = time.process_time()
    schedule = tf.plan(topology, collective, check=False)
    seconds = time.process_time() - began
    tf.check(schedule)
    least = least_time(topology, schedule.collective)
    times, busiest = (
        schedule_cost(schedule).hardware_times,
        int(measure_link_use(schedule).of_arc.max()),
    )
    return {
        "network": name,
        "collective": collective,
        "algorithm": schedule.algorithm,
        "chunks": schedule.chunks,
        "steps": schedule.round_count,
        "late": schedule.round_count - busiest - least_path_length(topology, schedule.collective),
        "bound": str(least),
        "times": round(float(times), 3),
        "above": round(float(times / least), 3),
        "seconds": round(seconds, 1),
    }


def _is_above(row: dict[str, object]) -> bool:
    """Return True if a row is too far above its bounds."""
    alike = ALIKE.get(str(row["collective"]), 1.03)
    return float(str(row["above"])) > alike or int(str(row["late"])) > LATE


def main():
    """Print the table, or one JSON object; return 2 if a row is too far above its bounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    cases = [(name, kind) for name in arguments.networks for kind in arguments.collectives]
    rows: list[dict[str, object]] = []
    with print_notices(), progress_bar("networks") as progress:
        for name, kind in cases:
            progress(len(rows), len(cases), f"{name} {kind}")
            rows.append(row(name, kind))
            if not arguments.json:
                print("  ".join(f"{cell!s:>14}" for cell in rows[-1].values()), flush=True)
    above = [row for row in rows if _is_above(row)]
    if arguments.json:
        print_json({"rows": rows, "above": above})
    else:
        print(f"{len(above)} of {len(rows)} are too far above their bounds")
        for far in above:
            print(far)
    return 2 * bool(above)


if __name__ == "__main__":
    sys.exit(main())
