"""Links of several cycles in hardware: their modules, and fabrics with them."""

from dataclasses import replace

import pytest
from helpers import few, simulated

import torusfabric as tf
from torusfabric.rtl.links import MOST_REGISTERS, Link
from torusfabric.rtl.netlist import Role


@pytest.mark.parametrize("cycles", [2, 3, MOST_REGISTERS + 1, MOST_REGISTERS + 2, 9, 64])
def test_a_word_comes_out_as_late_as_it_should(cycles):
    link, shown = Link(cycles, 8), []
    assert bool(link.memories()) == (cycles - 1 > MOST_REGISTERS)

    async def bench(context):
        for word in range(1, 150):
            context.set(link.sent, word)
            await context.tick()
            shown.append(context.get(link.arrived))

    simulated(link, bench)
    # After the edge that takes word w there is what was taken so many edges before.
    assert shown[cycles - 2 :] == list(range(1, 150 - (cycles - 2)))


CASES = [
    ("allgather", "matching", 2, {"flits": 3}),
    ("allgather", "hamiltonian", (1, 3), {"flits": 8}),
    ("allgather", "hamiltonian", 9, {"flits": 8}),
    ("allreduce", "spanning-tree", 3, {"flits": 4}),
    ("reduce-scatter", "matching", (2, 3), {"max_flits": 4}),
    ("broadcast", "max-flow", (7, 1), {"flits": 4}),
    ("scatter", "farthest-first", 2, {"flits": 2, "root": "any"}),
]


def fabric_of(collective, algorithm, latency, options, **hardware):
    """A small fabric."""
    sides = (3, 3) if algorithm == "hamiltonian" else (2, 3)
    torus = tf.Torus(*sides, link_latency=latency)
    plan = tf.plan(torus, collective, algorithm=algorithm)
    return tf.Fabric(tf.compile(plan, **options), width=8, **hardware)


@pytest.mark.parametrize(("collective", "algorithm", "latency", "options"), few(3, [*CASES]))
def test_hardware_takes_the_cycles_that_are_predicted(collective, algorithm, latency, options):
    report = tf.simulate(fabric_of(collective, algorithm, latency, options), engine="amaranth")
    assert report.words_wrong == 0
    assert report.cycles == report.predicted_cycles


def test_streams_pass_long_links():
    fabric = fabric_of("allgather", "matching", (2, 3), {"flits": 2}, top="stream")
    report = tf.simulate(fabric, engine="amaranth")
    assert report.words_wrong == 0
    assert report.cycles == report.predicted_cycles


def test_only_long_links_are_modules():
    fabric = fabric_of("allgather", "matching", (1, 3), {"flits": 2})
    links = list(fabric.netlist.having(Role.LINK))
    assert len(links) == 6 * 2
    assert {link.module for link in links} == {"link_3"}
    short = fabric_of("allgather", "matching", 1, {"flits": 2})
    assert not list(short.netlist.having(Role.LINK))


def test_a_link_that_is_a_cycle_too_long_is_noticed():
    """One of twelve links is exchanged for one of the next latency."""
    fabric = fabric_of("allgather", "matching", (3, 4), {"flits": 4})
    netlist = fabric.netlist
    first = next(link for link in netlist.having(Role.LINK) if link.module == "link_3")
    instances = tuple(
        replace(each, module="link_4") if each is first else each for each in netlist.instances
    )
    fabric.__dict__["netlist"] = netlist.with_instances(instances)
    assert fabric.netlist.instances == instances
    report = tf.simulate(fabric, engine="amaranth")
    assert report.words_wrong > 0
