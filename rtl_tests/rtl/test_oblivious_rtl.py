"""Oblivious all-gathers from the plan to the hardware: every word, to the cycle, on many tori."""

import pytest
from helpers import fabric_of, plan

import torusfabric as tf
from torusfabric import verilog
from torusfabric.analysis.bounds import bound
from torusfabric.analysis.check import check
from torusfabric.rtl import Fabric
from torusfabric.simulation.simulate import simulate

long = pytest.mark.long

#: Steps on each torus, by closed formula or as published with the algorithms.
HAMILTONIAN = {"4x4": 8, "5x5": 12, "6x7": 21, "7x6": 21, "8x8": 32, "9x5": 22, "3x3x3": 13,
               "3x4x5": 30, "4x4x4": 32, "6x6x3": 54, "3x3x3x3": 40}  # fmt: skip
ONE_PACKET = {"4x4": 8, "5x5": 12, "6x7": 19, "7x6": 19, "8x8": 26, "9x5": 19, "3x3x3": 9,
              "3x3x4": 15, "6x6x3": 35, "4x4x2x4": 42}  # fmt: skip
REDISTRIBUTE = {"2x3": 4, "4x3": 9, "4x5": 15, "6x7": 28, "7x6": 28}

#: Tori that take no more than two seconds or so to simulate.
QUICK = {
    "hamiltonian": ["4x4", "5x5"],
    "one-packet": ["4x4", "5x5"],
    "redistribute": ["2x3", "4x3"],
}


def cases(algorithm, steps):
    """The tori of an algorithm, the large ones marked."""
    quick = QUICK[algorithm]
    return [
        pytest.param(name, count, marks=[] if name in quick else [long])
        for name, count in steps.items()
    ]


def check_waves(topology, algorithm, steps, *, waves=1):
    """No wrong word, and one cycle a step and wave and three more."""
    schedule = plan(topology, "allgather", algorithm)
    assert check(schedule).rounds == schedule.steps == steps
    fabric = Fabric(tf.compile(schedule, flits=waves * schedule.chunks), width=8)
    report = simulate(fabric)
    assert report.cycles == report.predicted_cycles == waves * steps + 5
    assert report.words_wrong == 0
    assert report.words_checked == fabric.nodes**2 * fabric.flits
    return report


@pytest.mark.parametrize(("topology", "steps"), cases("hamiltonian", HAMILTONIAN))
def test_hamiltonian(topology, steps):
    """Chunks along Hamiltonian cycles take (N - 1) / 2 steps, rounded up: the bound."""
    report = check_waves(topology, "hamiltonian", steps)
    assert report.rounds == report.nodes // 2 == report.bound


@pytest.mark.parametrize(("topology", "steps"), cases("one-packet", ONE_PACKET))
def test_one_packet(topology, steps):
    """Whole messages along partial cycles, repeats dropped."""
    check_waves(topology, "one-packet", steps)


@pytest.mark.parametrize(("topology", "steps"), cases("redistribute", REDISTRIBUTE))
def test_redistribute(topology, steps):
    """Packets that are first evened out need rounds of their own, of many blocks each."""
    fabric = fabric_of(topology, "allgather", "redistribute")
    report = simulate(fabric)
    assert check(fabric.program.schedule).rounds == report.rounds == steps
    assert report.cycles == report.predicted_cycles
    assert (report.words_wrong, report.words_checked) == (0, fabric.nodes**2 * fabric.flits)


@pytest.mark.parametrize("algorithm", ["hamiltonian", "one-packet"])
def test_several_waves(algorithm):
    """Longer messages follow each other without a gap."""
    check_waves("5x4", algorithm, 10, waves=3)


@pytest.mark.parametrize(
    ("algorithm", "topology", "steps"),
    [
        ("hamiltonian", "3x3x3x3", 40),
        ("hamiltonian", "4x4x4x4", 128),
        ("one-packet", "4x4x4x4", 78),
    ],
)
def test_four_axes_planned_and_checked(algorithm, topology, steps):
    """Four axes are checked whole; their fabrics are in the long run."""
    schedule = plan(topology, "allgather", algorithm)
    report = check(schedule)
    assert report.rounds == steps
    assert bound(schedule, report) <= steps


@pytest.mark.long
@pytest.mark.parametrize(("algorithm", "steps"), [("hamiltonian", 128), ("one-packet", 78)])
def test_four_axes_of_four(algorithm, steps):
    """The whole of 4x4x4x4, compiled."""
    from torusfabric.simulation.engines import CompiledEngine

    fabric = fabric_of("4x4x4x4", "allgather", algorithm, width=8)
    report = simulate(fabric, engine=CompiledEngine(fabric))
    assert report.cycles == report.predicted_cycles == steps + 5
    assert (report.words_wrong, report.words_checked) == (0, 256**2 * fabric.flits)


def router_texts(topology, algorithm):
    """The emitted router modules, without their names and in any order."""
    design = verilog.emit(fabric_of(topology, "allgather", algorithm, width=8), command="")
    texts = {design.modules[name].replace(f"module {name} ", "module router ")
             for name in design.classes}  # fmt: skip
    assert len(texts) == len(design.classes)
    return texts


@pytest.mark.parametrize(
    ("algorithm", "small", "large", "modules"),
    [
        ("hamiltonian", "8x8", "32x32", 2),
        pytest.param("one-packet", "8x8", "32x32", 2, marks=long),
        pytest.param("hamiltonian", "9x8", "33x32", 3, marks=long),
        pytest.param("one-packet", "9x9", "33x33", 13, marks=long),
        pytest.param("hamiltonian", "9x9", "33x33", 3, marks=long),
        pytest.param("one-packet", "8x10", "32x40", 2, marks=long),
        pytest.param("one-packet", "9x7", "31x25", 13, marks=long),
        pytest.param("one-packet", "6x6x6", "12x12x12", 5, marks=long),
    ],
)
def test_router_modules_do_not_grow(algorithm, small, large, modules):
    """The larger torus has the very same router modules, more often."""
    texts = router_texts(small, algorithm)
    assert len(texts) == modules
    assert router_texts(large, algorithm) == texts


@pytest.mark.parametrize(
    ("algorithm", "topology", "most"),
    [
        ("one-packet", "5x5", 14),
        ("one-packet", "6x6x4", 5),
        pytest.param("hamiltonian", "9x9x9", 15, marks=long),
        pytest.param("hamiltonian", "3x4x5", 15, marks=long),
        pytest.param("hamiltonian", "10x10x10", 15, marks=long),
        pytest.param("hamiltonian", "12x11x10", 15, marks=long),
        pytest.param("one-packet", "12x12x6", 5, marks=long),
    ],
)
def test_few_router_modules_on_other_shapes(algorithm, topology, most):
    """At most 15 in three axes, whatever the sides."""
    assert len(router_texts(topology, algorithm)) <= most
