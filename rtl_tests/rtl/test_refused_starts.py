"""Starts, jobs and arguments that are refused, and their errors."""

import numpy as np
import pytest
from fabrics import build_fabric, draw_words
from helpers import program_of, starts_seen
from host_driver import HostDriver

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.simulation.engines import AmaranthEngine

#: Topology, collectives, options; then the starts, and the error of each. "end" waits until the
#: previous run is over. A run that begins has error 0, and a start during a run has error 5.
STARTS = [
    (
        ("2x3", "allgather:matching", {"max_flits": 5}),
        [{"length": n} for n in (0, 6, 2)] + [{"length": 5}, "end", {"length": 7}, {"length": 5}],
        [3, 3, 0, 5, 3, 0],
    ),
    (
        ("3", "allgather,broadcast,alltoall", {"max_flits": 3, "root": "any"}),
        # The root is ignored in a mode without a root.
        [{"mode": m, "root": r, "length": n}
         for m, r, n in ((3, 3, 0), (1, 3, 0), (1, 2, 0), (0, 3, 0), (0, 3, 2))],
        [1, 2, 3, 3, 0],
    ),
    (
        ("3", "reduce:max-flow",
         {"max_flits": 2, "root": "any", "operators": ["add", "min", "and"]}),
        [{"length": n, "root": r, "operation": k}
         for n, r, k in ((0, 3, 3), (0, 2, 3), (1, 2, 3))],
        [2, 3, 4],
    ),
    (
        ("2x3", "broadcast:max-flow", {"flits": 2, "root": "any"}),
        [{"root": 6}, {"root": 4}, {"root": 7}, "end", {"root": 7}, {"root": 0}],
        [2, 0, 5, 2, 0],
    ),
    # Every number is a node.
    (("2x2", "broadcast:max-flow", {"root": "any"}), [{"root": 3}, {"root": 1}], [0, 5]),
    (
        ("3", "allreduce:matching", {"max_flits": 2, "operators": ["add", "min", "max"]}),
        [{"length": n, "operation": k} for n, k in ((1, 3), (0, 3), (2, 2), (0, 3))],
        [4, 3, 0, 5],
    ),
    (
        ("3", "allreduce:matching", {"operators": ["add", "min", "max"]}),
        [{"operation": k} for k in (3, 2, 0)],
        [4, 0, 5],
    ),
    # Every number is an operator.
    (
        ("3", "allreduce:matching", {"operators": ["add", "min"]}),
        [{"operation": 1}, {"operation": 1}],
        [0, 5],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("selection", "starts", "errors"), STARTS)
def test_refused_starts(selection, starts, errors):
    topology, collectives, options = selection
    fabric = build_fabric(topology, collectives, **options)
    steps = [fabric.predicted_cycles if start == "end" else start for start in starts]
    seen = starts_seen(fabric, steps)
    assert [error for error, *_ in seen] == errors
    # A run that begins is busy; `done` stays high until then.
    busy = [error in (0, 5) for error in errors]
    assert [bool(each[1]) for each in seen] == busy
    done = ["end" in starts[: number + 1] for number, start in enumerate(starts) if start != "end"]
    assert [each[2] for each in seen] == [d and not b for d, b in zip(done, busy, strict=True)]


@pytest.mark.parametrize(
    ("topology", "collectives", "options", "job", "refused"),
    [
        ("2x3", "scatter", {"flits": 2, "root": "any"}, tf.Job(root=4), {"root": 7}),
        ("2x3", "broadcast", {"max_flits": 2}, tf.Job(length=2), {"length": 3}),
        ("3", "allreduce", {"operators": ["add", "min", "max"]}, tf.Job(operation=2),
         {"operation": 3}),
    ],
)  # fmt: skip
def test_a_refused_start_changes_nothing(topology, collectives, options, job, refused):
    """A refused start changes neither received words, nor the cycle count, nor the next run."""
    fabric = build_fabric(topology, collectives, **options)
    engine, cycles = AmaranthEngine(fabric), fabric.program.cycles(job.length)
    design, (words, expected, receives) = engine.design, draw_words(fabric, job, seed=1)

    async def testbench(ctx):
        driver = HostDriver(ctx, fabric, design)
        clock = driver.clock
        await driver.load(words)
        for _ in range(2):
            assert await driver.collect(job) == cycles
            for name, value in ({"start": 1} | refused).items():
                ctx.set(getattr(design, name), value)
            await clock.tick()
            ctx.set(design.start, 0)
            for _ in range(cycles):
                await clock.tick()
            shown = [ctx.get(each) for each in (design.done, design.busy, design.cycles)]
            assert shown == [1, 0, cycles]
            await driver.take(words)
            assert (words.received[receives] == expected[receives]).all()

    engine.run_testbench(testbench)


BROADCAST = ("2x3", "broadcast:max-flow", {"max_flits": 4, "root": "any"})
MODES = ("3", "allgather,alltoall", {"max_flits": 2})


@pytest.mark.parametrize(
    ("selection", "jobs", "message"),
    [
        (BROADCAST, [], "Jobs must be at least one; leave"),
        (BROADCAST, [tf.Job(length=0)], "Length must be from 1 to 4 flits, not 0"),
        (BROADCAST, [tf.Job(length=5)], "Length must be from 1 to 4 flits, not 5"),
        (BROADCAST, [tf.Job(length=2, root=6)], "Root must be from 0 to 5, not 6"),
        (("3x3", "broadcast", {}), [tf.Job(root=1)], "This fabric has one root, which no run"),
        (MODES, [tf.Job(mode=2)], "Mode must be from 0 to 1, not 2"),
        (
            ("3", "allreduce", {"operators": ["or", "and"]}),
            [tf.Job(operation=2)],
            "Operation must be from 0 to 1, not 2",
        ),
        (
            ("3", "allreduce", {"operators": ["or"]}),
            [tf.Job(operation=0)],
            "This fabric has one operation, which no run chooses",
        ),
    ],
)
def test_refused_jobs(selection, jobs, message):
    topology, collectives, options = selection
    with pytest.raises(tf.InputError, match=f"^{message}"):
        tf.simulate(build_fabric(topology, collectives, **options), jobs=jobs)


def test_cycles_of_a_mode_that_does_not_exist():
    topology, collectives, options = MODES
    with pytest.raises(tf.InputError, match="Mode must be from 0 to 1, not 2"):
        build_fabric(topology, collectives, **options).program.cycles(1, mode=2)


#: Values of wrong types: no numbers, words, booleans or fabrics.
WRONG = [np.array([1, 2]), np.array(3), np.array(["host", "x"]), {}, object(), 1.5, b"x"]

MAKE = {
    "Beat": lambda wrong: fabric(beat=wrong if getattr(wrong, "ndim", 1) else [3]),
    "Empty": lambda wrong: fabric(empty=wrong),
    "Tables": lambda wrong: fabric(tables=wrong),
    "Link latency": lambda wrong: tf.Torus(3, 3, link_latency=[wrong]),
    "Port": lambda wrong: tf.connect(wrong if np.size(wrong) else [4]),
    "Fabric": lambda wrong: tf.connect("sim", wrong),
    "Jobs": lambda wrong: tf.simulate(fabric(), jobs=wrong if np.size(wrong) == 1 else [wrong]),
}


def fabric(**options):
    """A small fabric."""
    return tf.Fabric(program_of("3x3", "allgather", flits=2), width=8, **options)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("what", MAKE)
def test_wrong_arguments(what, wrong):
    """A wrong argument is refused in one line that begins with the name of the argument."""
    with pytest.raises(InputError, match=rf"(?i)^{what} must [^\n]*$"):
        MAKE[what](wrong)
