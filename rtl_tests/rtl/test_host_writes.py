"""Which nodes the host port writes: one of a group by its place, the group by a bit of its own."""

import pytest
from helpers import fabric_of, few, plan, simulated

import torusfabric as tf
from torusfabric.rtl.arrays import NodeGroups
from torusfabric.rtl.host import Host

#: Sizes and counts of groups, by the number of nodes.
GROUPS = {
    1: (1, 1),
    2: (2, 1),
    3: (2, 2),
    4: (2, 2),
    5: (4, 2),
    9: (4, 3),
    12: (4, 3),
    16: (4, 4),
    17: (8, 3),
    64: (8, 8),
    4096: (64, 64),
}


@pytest.mark.parametrize("nodes", GROUPS)
def test_groups_are_powers_of_two_near_the_square_root(nodes):
    groups = NodeGroups(nodes)
    assert (groups.size, groups.count) == GROUPS[nodes]
    low = (1 << groups.place_bits) - 1
    assert {groups.of(node) for node in range(nodes)} == {*range(groups.count)}
    assert len({(groups.of(node), node & low) for node in range(nodes)}) == nodes


def given_to_nodes(fabric, accesses):
    """What the host port gives to nodes after each of some accesses: (node, sends, writes)."""
    host = fabric.netlist.modules["host"]()
    shown = []

    async def bench(ctx):
        for step in range(len(accesses) + host.write_cycles):
            node, sends, writes = accesses[min(step, len(accesses) - 1)]
            ctx.set(host.host_node, node)
            ctx.set(host.host_addr, 0 if sends else fabric.layout.recv_base)
            ctx.set(host.host_we, writes and step < len(accesses))
            if step >= host.write_cycles:
                shown.append((ctx.get(host.write_node), ctx.get(host.write_enable)))
            await ctx.tick()

    simulated(host, bench)
    return shown


@pytest.mark.parametrize("topology", ["2", "3", "5", "9", "3x4", "4x4"])
def test_a_write_enables_the_group_of_its_node(topology):
    """No other group, and none where there is no node of that number, or nothing is written."""
    fabric = tf.Fabric(tf.compile(plan(topology, "alltoall")), width=8)
    groups = NodeGroups(fabric.nodes)
    numbers = 1 << len(fabric.host_node)
    accesses = [
        (node, sends, writes)
        for node in range(numbers)
        for sends in (True, False)
        for writes in (True, False)
    ]
    wanted = []
    for node, sends, writes in accesses:
        group = node >> groups.place_bits
        enable = 1 << group if sends and writes and group < groups.count else 0
        wanted.append((node % (1 << groups.place_bits), enable))
    assert given_to_nodes(fabric, accesses) == wanted


SELECTIONS = [("2", "alltoall"), ("3", "alltoall"), ("5", "allgather"), ("9", "alltoall"),
              ("3x4", "alltoall"), ("4x4", "allgather")]  # fmt: skip


@pytest.mark.parametrize("selection", few(4, SELECTIONS, tuples=True))
def test_every_node_holds_what_was_written_for_it(selection):
    """The place of a node in its group occurs in all groups, and is written in each."""
    assert tf.simulate(fabric_of(*selection)).passed


@pytest.mark.parametrize("change", ["exchanged", "given to all groups"])
def test_a_write_that_reaches_another_group_is_found(change, monkeypatch):
    pulses = Host.pulses

    def changed(host, *arguments):
        bits = pulses(host, *arguments)
        return bits[::-1] if change == "exchanged" else bits.any().replicate(len(bits))

    fabric = fabric_of("2x2", "alltoall")
    monkeypatch.setattr(Host, "pulses", changed)
    assert not tf.simulate(fabric).passed
