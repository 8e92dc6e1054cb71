"""What can be counted of a commit: cycles, look-up tables, registers. They have no noise.

A count is worse if it is larger than that kept in ``sim/measured/counts.json``. Those of hardware
depend on the version of Yosys, which is kept beside them.
"""

from collections.abc import Callable
from typing import NamedTuple

import torusfabric as tf
from torusfabric.analysis.volume import limit
from torusfabric.toolchain import tools

#: What is counted, by name.
Counts = dict[str, int]

#: Reports how far work has come.
Progress = Callable[[int, int, str], object]

TORI = ("4x4", "8x8", "5x7", "6x4", "4x4x4", "7x7x7")

COLLECTIVES = ("broadcast", "scatter", "gather", "allgather", "alltoall", "reduce",
               "reduce-scatter", "allreduce")  # fmt: skip

#: Flits of messages.
LENGTHS = (1, 4, 16, 64, 256)


class Hardware(NamedTuple):
    """A fabric that is synthesized for ECP5, without place and route.

    Parameters
    ----------
    name : str
    topology : str
    collectives : str
        As on the command line.
    width : int
    most : int or None
        Flits of the longest message of an engine; None for messages of one length, a flit a chunk.
    top : str
    """

    name: str
    topology: str
    collectives: str
    width: int
    most: int | None = None
    top: str = "host"


HARDWARE = (
    Hardware("wires", "8x8", "allgather:hamiltonian", 32),
    Hardware("wires with streams", "4x4", "allgather:hamiltonian", 32, top="stream"),
    Hardware("tables", "8x8", "allgather:bufferless", 32),
    Hardware("circuits", "4x4", "broadcast:max-flow", 32),
    Hardware("operators", "4x4", "allreduce", 16),
    Hardware("engine of four", "4x4", "allgather,alltoall,allreduce,broadcast", 16, most=4),
    Hardware("engine of eight", "4x4", ",".join(COLLECTIVES), 8, most=4),
)


def count_cycles(progress: Progress) -> Counts:
    """Cycles of what is planned for each length without further wishes."""
    found: Counts = {}
    cases = [(torus, collective) for torus in TORI for collective in COLLECTIVES]
    for done, (torus, collective) in enumerate(cases):
        progress(done, len(cases), f"{torus} {collective}")
        for length in LENGTHS:
            found[f"{torus} {collective} {length}"] = cycles_of(torus, collective, length)
    return found


def cycles_of(torus: str, collective: str, length: int) -> int:
    """Cycles of what is planned for a length without further wishes."""
    return tf.compile(tf.plan(torus, collective, flits=length), flits=length).cycles()


def limits() -> Counts:
    """The physical limit of the same cases."""
    return {
        f"{torus} {collective} {length}": limit(
            tf.parse_topology(torus), tf.parse_collective(collective), length
        )
        for torus in TORI
        for collective in COLLECTIVES
        for length in LENGTHS
    }


def count_hardware(progress: Progress) -> Counts:
    """Look-up tables and registers of whole fabrics, and tables of their worst router."""
    found: Counts = {}
    for done, case in enumerate(HARDWARE):
        progress(done, len(HARDWARE), case.name)
        report = tf.synthesize(tf.emit(fabric_of(case)), "ecp5-85k")
        found[f"{case.name}, LUTs"] = report.fabric["luts"]
        found[f"{case.name}, FFs"] = report.fabric["ffs"]
        found[f"{case.name}, LUTs of a router"] = max(row["luts"] for row in report.classes)
    return found


def fabric_of(case: Hardware) -> tf.Fabric:
    """The fabric of a case."""
    schedules = [tf.plan(case.topology, name) for name in case.collectives.split(",")]
    plans = schedules if len(schedules) > 1 else schedules[0]
    return tf.Fabric(tf.compile(plans, max_flits=case.most), width=case.width, top=case.top)


def yosys() -> str:
    """The version of Yosys."""
    return tools.version("yosys")
