"""Flows of oblivious patterns, compared with the rounds that they describe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.algorithms.oblivious.hamiltonian.plan import HAMILTONIAN
from torusfabric.algorithms.oblivious.one_packet.plan import ONE_PACKET
from torusfabric.collective import Collective
from torusfabric.schedule import Pattern, Switching
from torusfabric.schedule.pattern import Flows
from torusfabric.topology import Torus

ALLGATHER = Collective("allgather")


def pattern_of(torus, feed, inject, steps=20):
    return Pattern(
        topology=torus, collective=ALLGATHER, algorithm="drawn",
        switching=Switching.STORE_AND_FORWARD,
        ports=torus.ports, chunks=max(int(np.max(inject)) + 1, 1), steps=steps,
        feed=np.asarray(feed, np.int8), inject=np.asarray(inject),
    )  # fmt: skip


def injected(pattern, arcs):
    """Origin and chunk of the blocks that arcs inject, -1 for none."""
    chunk = pattern.inject.ravel()[arcs]
    return np.where(chunk >= 0, arcs // pattern.feed.shape[1], -1), chunk


def injected_along(pattern, flows, flow):
    return injected(pattern, flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]])


def assert_flows_match_the_rounds(pattern):
    """Check each arc's block in each step by the rounds and by the docstring of `Flows`."""
    flows, shape = Flows.from_pattern(pattern), pattern.feed.shape
    node, port = pattern.topology.feeding(pattern.feed)
    feeder = (node * shape[1] + port).ravel()
    before = np.arange(feeder.size)  # the arc from which this step's block comes
    for step, transfers in enumerate(pattern.rounds(), 1):
        carried = np.full((2, *shape), -1)
        ids, blocks = transfers.payload.ids, pattern.blocks
        carried[:, transfers.source, transfers.hops[:, 0]] = blocks.origin(ids), blocks.chunk(ids)
        for node, port in np.ndindex(shape):
            expected = block_of_flow(pattern, flows, node, port, step)
            if flows.flow[node, port] >= 0 and step <= flows.tail[node, port]:
                expected = injected(pattern, before[node * shape[1] + port])
            assert (*carried[:, node, port],) == (*expected,)
        before = feeder[before]
    return flows


def block_of_flow(pattern, flows, node, port, step):
    """The block of an arc of a flow, in steps past its tail."""
    flow, index = flows.flow[node, port], flows.index[node, port] - step + 1
    if flow >= 0 and flows.length[flow]:
        index %= flows.length[flow]
    if flow < 0 or index < 0:
        return -1, -1
    origin, chunk = injected_along(pattern, flows, flow)
    return origin[index], chunk[index]


@pytest.mark.parametrize("sides", [(5,), (2,), (4, 4), (3, 5), (2, 4), (3, 3, 4)])
def test_hamiltonian_cycles_are_flows(sides):
    schedule = HAMILTONIAN(Torus(sides), ALLGATHER)
    flows = assert_flows_match_the_rounds(schedule)
    nodes = schedule.topology.nodes
    assert flows.length.tolist() == [nodes] * (2 * len(sides))
    assert flows.on_cycle.all()
    assert not flows.tail.any()
    for flow in range(len(flows)):
        origin, chunk = injected_along(schedule, flows, flow)
        assert sorted(origin) == list(range(nodes))
        assert len(set(chunk.tolist())) == 1


@pytest.mark.parametrize("sides", [(4, 6), (3, 3), (5, 5), (7, 5), (3, 3, 4)])
def test_partial_cycles_have_leaves(sides):
    schedule = ONE_PACKET(Torus(sides), ALLGATHER)
    flows = assert_flows_match_the_rounds(schedule)
    assert (flows.tail > 0).any() == (sides != (3, 3))
    assert (flows.on_cycle == (flows.tail == 0)).all()
    assert (flows.length > 0).all()


def test_a_chain_runs_dry():
    # On a ring of 5, arcs +0 of nodes 1 to 3 feed each other, from node 1 on.
    torus = Torus((5,))
    feed, inject = np.full((5, 2), -1), np.full((5, 2), -1)
    feed[[2, 3], 0] = 1
    inject[[1, 2], 0] = 0
    pattern = pattern_of(torus, feed, inject)
    flows = assert_flows_match_the_rounds(pattern)
    assert flows.length.tolist() == [0]
    assert flows.index[[1, 2, 3], 0].tolist() == [0, 1, 2]
    assert flows.flow[:, 0].tolist() == [-1, 0, 0, 0, -1]
    assert [part.tolist() for part in injected_along(pattern, flows, 0)] == [[1, 2, -1], [0, 0, -1]]
    assert not flows.on_cycle.any()


def test_a_branching_chain_is_one_flow_for_each_end():
    # Node 0 sends to node 1, which passes it on to all its other neighbours.
    torus = Torus((4, 4))
    feed, inject = np.full((16, 4), -1), np.full((16, 4), -1)
    there, back = 2, 3
    inject[0, there] = 0
    feed[1, [0, 1, there]] = back
    pattern = pattern_of(torus, feed, inject)
    flows = assert_flows_match_the_rounds(pattern)
    assert flows.length.tolist() == [0, 0, 0]
    assert np.diff(flows.indptr).tolist() == [2, 2, 2]
    assert flows.flow[0, there] == flows.flow[1, 0], "an arc goes on with the least that it feeds"
    assert [injected_along(pattern, flows, k)[0].tolist() for k in range(3)] == [[0, -1]] * 3


def test_nothing_injected_means_no_flow():
    torus = Torus((3, 3))
    none = np.full((9, 4), -1)
    feed = np.tile([1, 0, 3, 2], (9, 1))
    assert len(assert_flows_match_the_rounds(pattern_of(torus, feed, none))) == 0
    assert len(assert_flows_match_the_rounds(pattern_of(torus, none, none))) == 0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.sampled_from([(2,), (3,), (6,), (2, 2), (3, 4), (2, 2, 3)]),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    st.sampled_from([0.1, 0.8]),
    st.integers(0, 2**32 - 1),
)
def test_any_pattern(sides, unfed, injecting, seed):
    torus, random = Torus(sides), np.random.default_rng(seed)
    shape = torus.nodes, torus.ports
    feed = np.where(random.random(shape) < unfed, -1, random.integers(0, torus.ports, shape))
    inject = np.where(random.random(shape) < injecting, random.integers(0, 3, shape), -1)
    assert_flows_match_the_rounds(pattern_of(torus, feed, inject))
