"""Lower bounds: figures of the papers, optima found by exhaustive search, and known schedules."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from check_model import collective, explicit, ring
from paper_costs import (
    one_packet_steps,
    time_dependent,
    time_hamiltonian,
    time_one_packet,
    whole_packet_steps,
)
from scipy.sparse.csgraph import maximum_flow

import torusfabric as tf
from torusfabric.algorithms import Options
from torusfabric.algorithms.circuit.max_flow import FlowNetwork
from torusfabric.algorithms.table.bufferless import BUFFERLESS
from torusfabric.algorithms.table.matching.plan import MATCHING
from torusfabric.analysis.bounds import (
    all_pairs_rounds,
    bound,
    busiest_arc_load,
    lower_bound,
    spread_rounds,
)
from torusfabric.analysis.check import check
from torusfabric.analysis.facts import facts_text, merge_facts, schedule_facts
from torusfabric.collective import Collective
from torusfabric.schedule import Listed, Switching, Transfers
from torusfabric.topology import Faulty, Torus

FORWARD, CIRCUIT = Switching.STORE_AND_FORWARD, Switching.CIRCUIT


def least(sides, kind, switching=FORWARD, **options):
    """Return the bound for a collective on a torus."""
    return lower_bound(Torus(sides), collective(kind), switching=switching, **options)


def transfers(*steps):
    """Return one-hop transfers from entries (source, port) or (source, port, block)."""
    columns = [np.array(column) for column in zip(*steps, strict=True)]
    hops = columns[1][:, None].astype(np.int8)
    return Transfers(columns[0], hops, *[Listed.single(ids) for ids in columns[2:]])


# Figures of the papers


@pytest.mark.parametrize(("i", "rounds"), [(1, 4), (2, 7), (3, 11)])
def test_gossip_on_cubes_of_seven(i, rounds):
    """The bounds are those of Delmas and Perennes, section 4, without the relaxation."""
    assert all_pairs_rounds(Torus([7**i] * 3)) == rounds
    assert least([7**i] * 3, "allgather", CIRCUIT) == rounds
    assert busiest_arc_load(Torus([7**i] * 3)) == Fraction(7 ** (2 * i) * (49**i // 4), 2)


def test_fourth_cube_of_seven():
    """The bound of a torus of 7^12 nodes is computed from its sides alone, without tables."""
    large = Torus.__new__(Torus)
    large.sides, large.nodes, large.ports = (7**4,) * 3, 7**12, 6
    large.distances = np.zeros(1, int)
    assert all_pairs_rounds(large) == 15


@pytest.mark.parametrize(
    ("nodes", "ports", "rounds"),
    [(16, 3, 2), (17, 3, 3), (24, 4, 2), (5000, 4, 6), (343, 6, 3), (2, 1, 1), (1, 4, 0)],
)
def test_broadcast_spreads(nodes, ports, rounds):
    """A broadcast takes ceil(log_(ports + 1) N) rounds: Wang et al., section 1."""
    assert spread_rounds(nodes, ports) == rounds


@pytest.mark.parametrize(
    ("sides", "kind", "chunks", "steps"),
    [
        ((3, 3), "allgather", 1, 2), ((5, 5), "allgather", 1, 6), ((4, 4), "allgather", 4, 15),
        ((8, 8), "allgather", 4, 63), ((3, 3, 3), "allgather", 3, 13),
        ((4, 4, 4), "allgather", 6, 63), ((3, 3, 3, 3), "allgather", 1, 10),
        ((3, 3), "alltoall", 1, 3), ((5, 5), "alltoall", 1, 15), ((4, 4), "alltoall", 4, 32),
        ((8, 8), "alltoall", 4, 256), ((3, 3, 3), "alltoall", 3, 27),
        ((5, 5, 5), "alltoall", 3, 225), ((3, 3, 3, 3), "alltoall", 1, 27),
        ((10, 10, 10), "alltoall", 1, 1250), ((5, 5, 5, 5), "alltoall", 1, 375),
        ((3, 3, 3), "scatter", 3, 13), ((2, 2, 2), "scatter", 1, 3),
    ],
)  # fmt: skip
def test_necklaces_are_optimal(sides, kind, chunks, steps):
    """The steps of necklace schedules are lower bounds, too: Fragopoulou and Akl, section 4."""
    assert least(sides, kind, chunks=chunks) == steps


@pytest.mark.parametrize(
    ("kind", "reversal"),
    [("broadcast", "reduce"), ("scatter", "gather"), ("allgather", "reduce-scatter")],
)
@pytest.mark.parametrize("switching", [FORWARD, CIRCUIT])
@pytest.mark.parametrize("sides", [(5,), (4, 3), (3, 3, 2)])
@pytest.mark.parametrize("chunks", [1, 7])
def test_reversals_share_their_bound(kind, reversal, switching, sides, chunks):
    """A collective and its reversal have the same bound, since a schedule can be read backwards."""
    for ports in range(1, 2 * len(sides) + 1):
        options = {"chunks": chunks, "ports": ports}
        assert least(sides, kind, switching, **options) == least(
            sides, reversal, switching, **options
        )


# Optima found by exhaustive search


def optimum(topology, kind, chunks, ports):
    """Return the fewest steps with one block per arc, found by trying all.

    Further copies never hurt.
    """
    blocks = collective(kind).blocks(topology, chunks)
    ids = np.arange(blocks.n_blocks)
    start = tuple(
        frozenset(ids[blocks.precondition(ids) == v].tolist()) for v in range(topology.nodes)
    )  # fmt: skip
    node = blocks.postcondition(ids)
    goal = [frozenset(ids[(node == v) | (node < 0)].tolist()) for v in range(topology.nodes)]
    states, steps = {start}, 0
    while not any(all(g <= h for g, h in zip(goal, s, strict=True)) for s in states):
        reached = set().union(*(successors(topology, state, ports) for state in states))
        states, steps = undominated(reached), steps + 1
    return steps


def successors(topology, state, ports):
    """Yield all states one step later in which each arc that could carry a new block does."""
    arcs = list(np.ndindex(topology.nodes, topology.ports))
    choices = [[*(state[v] - state[topology.neighbours[v, p]]), None] for v, p in arcs]
    for choice in product(*choices):
        sent, received, after = [0] * len(state), [0] * len(state), [set(h) for h in state]
        for (v, p), block in zip(arcs, choice, strict=True):
            if block is not None:
                there = topology.neighbours[v, p]
                sent[v], received[there] = sent[v] + 1, received[there] + 1
                after[there].add(block)
        if max(sent + received) <= ports:
            yield tuple(map(frozenset, after))


def undominated(states):
    """Return the states that no other state contains."""
    kept: list = []
    for state in sorted(states, key=lambda s: -sum(map(len, s))):
        if not any(all(a <= b for a, b in zip(state, other, strict=True)) for other in kept):
            kept.append(state)
    return kept


SEARCHED = [
    ((3,), "broadcast", 1, 2, 1, True), ((3,), "broadcast", 2, 2, 2, False),
    ((3,), "broadcast", 3, 2, 2, True), ((3,), "broadcast", 2, 1, 3, False),
    ((4,), "broadcast", 1, 2, 2, True), ((4,), "broadcast", 2, 2, 2, True),
    ((4,), "broadcast", 1, 1, 2, True), ((5,), "broadcast", 1, 2, 2, True),
    ((5,), "broadcast", 1, 1, 3, True), ((6,), "broadcast", 1, 1, 3, True),
    ((3,), "allgather", 1, 2, 1, True), ((3,), "allgather", 1, 1, 2, True),
    ((4,), "allgather", 1, 2, 2, True), ((3,), "scatter", 1, 1, 2, True),
    ((4,), "scatter", 1, 2, 2, True), ((3,), "scatter", 2, 2, 2, True),
    ((3,), "gather", 2, 2, 2, True), ((4,), "gather", 1, 2, 2, True),
    ((2, 2), "broadcast", 1, 1, 2, True), ((2, 2), "broadcast", 1, 4, 2, True),
    ((2,), "allgather", 3, 2, 2, True), ((2,), "alltoall", 3, 2, 2, True),
    ((3,), "alltoall", 1, 2, 1, True),
]  # fmt: skip


@pytest.mark.parametrize(("sides", "kind", "chunks", "ports", "steps", "tight"), SEARCHED)
def test_never_above_the_optimum(sides, kind, chunks, ports, steps, tight):
    """The bound is at most the true optimum, and equal to it where marked."""
    assert optimum(Torus(sides), kind, chunks, ports) == steps
    lower = least(sides, kind, chunks=chunks, ports=ports)
    assert lower <= steps
    assert (lower == steps) == tight


def test_exchange_on_four_nodes_beats_equal_nodes():
    """An all-to-all on a ring of four nodes takes two steps, if odd and even nodes differ.

    Odd nodes send the far message down, even nodes up. If all nodes did the same, one port would
    carry three messages.
    """
    encode = Collective("alltoall").blocks(Torus([4]), 1).encode
    first, second = [], []
    for v in range(4):
        far, near = (0, 1) if v % 2 == 0 else (1, 0)
        step = 1 - 2 * far
        first += [(v, far, encode(v, 0, (v + 2) % 4)), (v, near, encode(v, 0, (v - step) % 4))]
        second += [((v + step) % 4, far, encode(v, 0, (v + 2) % 4)),
                   (v, far, encode(v, 0, (v + step) % 4))]  # fmt: skip
    steps = transfers(*first), transfers(*second)
    schedule = explicit((4,), "alltoall", *steps, switching=FORWARD)
    assert check(schedule).rounds == bound(schedule) == 2


def test_all_reduce_may_copy_partial_sums():
    """The bound of an all-reduce admits copies of partial sums, which are exchanged axis by axis.

    Known schedules on 4x4 take 4 steps.
    """
    assert least((4,), "allreduce") == 2
    assert least((4, 4), "allreduce") == 4
    assert least((4, 4), "allreduce", chunks=16) == 8, "15 * 2 receipts of 16 chunks, 4 at once"
    assert least((9, 9), "allreduce", chunks=40) == 20, "80 * 80 / 81 sums for each of 4 ports"
    assert least((9, 9), "allreduce", CIRCUIT) == 4, "as of an all-gather, by the load of arcs"
    assert least((3,), "allreduce", chunks=9, ports=1) == 12


def fewest_sums(topology, chunks, ports):
    """Return the fewest steps of an all-reduce with copies of partial sums, one per arc, by trying
    all.

    If a contribution may be counted twice, as for a maximum, the largest sum is the best to have
    and to send. The state of a node and chunk is therefore a set of contributions.
    """
    nodes, arcs = topology.nodes, list(np.ndindex(topology.nodes, topology.ports))
    whole = (1 << nodes) - 1
    states, steps = {tuple(1 << v for v in range(nodes) for _ in range(chunks))}, 0
    while not any(all(known == whole for known in state) for state in states):
        reached = set()
        for state in states:
            for choice in product([None, *range(chunks)], repeat=len(arcs)):
                sent, received, after = [0] * nodes, [0] * nodes, list(state)
                for (v, p), chunk in zip(arcs, choice, strict=True):
                    if chunk is not None:
                        there = topology.neighbours[v, p]
                        sent[v], received[there] = sent[v] + 1, received[there] + 1
                        after[there * chunks + chunk] |= state[v * chunks + chunk]
                if max(sent + received) <= ports:
                    reached.add(tuple(after))
        known = [s for s in reached if not any(_has_more(o, s) for o in reached)]
        states, steps = set(known), steps + 1
    return steps


def _has_more(one, other):
    """Return True if a state contains all contributions of another state, and more."""
    return one != other and all(a | b == a for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("sides", "chunks", "ports", "steps"),
    [((3,), 1, 2, 1), ((3,), 1, 1, 2), ((3,), 2, 2, 2), ((4,), 1, 2, 2), ((4,), 1, 1, 2),
     ((5,), 1, 2, 2), ((2, 2), 1, 2, 2)],
)  # fmt: skip
def test_no_all_reduce_is_below_the_bound(sides, chunks, ports, steps):
    """No all-reduce takes fewer steps than the bound, even if partial sums are copied."""
    assert fewest_sums(Torus(sides), chunks, ports) == steps
    assert least(sides, "allreduce", chunks=chunks, ports=ports) <= steps


def fewest_circuits(topology, ports):
    """Return the fewest rounds of a broadcast by circuits around broken links, by trying all.

    One round can reach any set of nodes that a flow from the informed nodes serves.
    """
    network = FlowNetwork(topology)
    nodes, states, rounds = np.arange(topology.nodes), {frozenset([0])}, 0
    while not any(len(state) == len(nodes) for state in states):
        reached = set()
        for state in states:
            informed = np.isin(nodes, list(state))
            for count in range(1, 1 << int((~informed).sum())):
                picked = [v for k, v in enumerate(nodes[~informed].tolist()) if count >> k & 1]
                demand = np.isin(nodes, picked).astype(np.int32)
                capacities = network.capacity_matrix(ports * informed.astype(np.int32), demand)
                flow = maximum_flow(capacities, network.source, network.sink)
                if flow.flow_value == len(picked):
                    reached.add(state | frozenset(picked))
        states = {s for s in reached if not any(s < other for other in reached)}
        rounds += 1
    return rounds


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
@pytest.mark.parametrize(
    ("sides", "ports", "broken", "rounds"),
    [
        ((2, 3), 4, [], 2),
        ((2, 3), 4, [(0, 0), (0, 1)], 2),
        ((2, 3), 4, [(0, 0), (0, 1), (0, 2)], 2),
        ((3, 3), 4, [(0, 0), (0, 1), (0, 2)], 3),
        ((3, 3), 2, [(0, 0), (0, 1), (0, 2)], 3),
        ((6,), 2, [(0, 0)], 3),
    ],
)
def test_no_rounds_around_broken_links_are_below_the_bound(kind, sides, ports, broken, rounds):
    """No broadcast around broken links takes fewer rounds than the bound, nor does its reversal."""
    topology = Faulty(Torus(sides), broken) if broken else Torus(sides)
    assert fewest_circuits(topology, ports) == rounds
    assert lower_bound(topology, collective(kind), switching=CIRCUIT, ports=ports) <= rounds


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
@pytest.mark.parametrize(("axes", "root"), [("", 0), ("", 5), ("@0+1", 0)])
def test_a_root_with_one_link_left(kind, axes, root):
    """From a root with one link, 2, 7 and at most 35 nodes are reached, so 3 rounds are needed."""
    broken = [(root, 0), (root, 1), (root, 2)]
    schedule = tf.plan(
        "4x4", kind + axes, root=root, algorithm="max-flow", broken_links=tuple(broken)
    )
    assert schedule.round_count == bound(schedule) == schedule_facts(schedule)["bound"] == 3
    whole = tf.plan("4x4", kind + axes, root=root, algorithm="max-flow")
    assert bound(whole) == 2


def test_several_collectives_say_where_their_bounds_hold():
    """The report of several collectives states the restriction of each bound."""
    plans = [tf.plan("6x6", "allgather", algorithm="bufferless"), tf.plan("6x6", "broadcast")]
    words = facts_text(merge_facts([schedule_facts(plan) for plan in plans]))
    assert "bound 10, where no block rests" in words["mode 0"]
    assert "where" not in words["mode 1"]


def test_half_duplex_halves_what_arrives():
    """Half duplex halves the bound on received messages: a link carries one message per step."""
    assert least((5, 5), "allgather", duplex="half") == 12
    assert least((5, 5), "allgather", duplex="half", ports=2) == 12
    assert least((5, 5), "allgather", duplex="half", ports=1) == 24
    assert least((5, 5), "alltoall", duplex="half") == 30
    assert least((5, 5), "scatter", duplex="half") == 6, "the root need not receive"


@pytest.mark.parametrize("nodes", range(2, 20))
def test_rings_meet_the_bound(nodes):
    """On a ring, forwarding in both directions meets the bound."""
    assert bound(ring(nodes, nodes // 2)) == nodes // 2


def test_long_messages_are_not_held_to_single_blocks():
    """A schedule whose messages are all that a node holds is bound by the diameter.

    A schedule that lists the blocks of its messages is bound by the length of these lists.
    """
    nodes = [(v, p) for v in range(8) for p in range(2)]
    steps = [transfers(*nodes)] * 4
    schedule = explicit((8,), "allgather", *steps, switching=FORWARD, chunks=3)
    traffic = check(schedule)
    assert bound(schedule) == bound(schedule, traffic) == 4
    assert traffic.round_blocks[-1] == 21, "at most 21 blocks in a message"
    assert least((8,), "allgather", chunks=3) == 11
    assert least((8,), "allgather", chunks=3, blocks=2) == 6
    assert least((8,), "allgather", chunks=3, blocks=None) == 4


def test_listed_messages_bound_by_their_longest():
    """The bound of listed messages uses the longest list, with or without a traffic."""
    twice = Listed(np.array([0, 2, 3]), np.array([0, 1, 0]))
    step = Transfers(np.array([0, 0]), np.array([[0], [1]], np.int8), twice)
    schedule = explicit((2,), "broadcast", step, switching=FORWARD, chunks=2)
    assert bound(schedule) == bound(schedule, check(schedule)) == 1
    assert least((2,), "broadcast", chunks=2, ports=1) == 2


# Closed running times


def test_two_hamiltonian_cycles_with_whole_packets():
    """Whole packets along two cycles take the steps of Theorem 2 of Meyer and Sibeyn."""
    assert whole_packet_steps(4096) == Fraction(11 * 4096, 40)


#: Table I for d = 2: n -> rows T_stv, T_opt, T_one for r = 0.01, 0.1, 1.
TABLE_1 = {
    4: [(4, 4, 8), (4, 5, 12), (6, 7, 12)],
    16: [(65, 70, 128), (65, 77, 192), (73, 79, 144)],
    64: [(1034, 1126, 2048), (1044, 1229, 3072), (1067, 1162, 2112)],
}


@pytest.mark.parametrize("n", TABLE_1)
def test_table_one(n):
    """The formulas give all entries of Table I for d = 2."""
    ratios = [Fraction(1, 100), Fraction(1, 10), Fraction(1)]
    for time, row in zip(
        [time_dependent, time_hamiltonian, time_one_packet], TABLE_1[n], strict=True
    ):
        assert tuple(round(time(n, 2, r, 1)) for r in ratios) == row


@pytest.mark.parametrize(
    ("n", "d", "steps"),
    [(8, 2, 26), (16, 2, 82), (64, 2, 1090), (6, 3, 77), (12, 3, 428)],
)
def test_one_packet_steps(n, d, steps):
    """The formula gives the measured steps of the one-packet patterns, with double receipts."""
    assert one_packet_steps(n, d) == steps
    assert time_one_packet(n, d, 1, 1, exact=True) == 2 * steps
    assert steps > time_one_packet(n, d, 1, 0)


def test_one_packet_steps_may_be_too_many():
    """For odd sides the formula is an upper bound: 204 steps for 9x9x9, where 203 suffice."""
    assert one_packet_steps(9, 3) == 204


@pytest.mark.parametrize(
    ("sides", "chunks", "steps"),
    [((3, 4), 1, 7), ((3, 4), 2, 12), ((3, 8), 1, 26), ((5, 6), 3, 69), ((4, 6), 1, 18)],
)
def test_exchange_in_which_all_nodes_do_the_same(sides, chunks, steps):
    """Tables have a bound of their own, which the plan meets.

    An even axis with an odd number of rings cannot share its hops evenly if all nodes do the same.
    """
    schedule = MATCHING(Torus(sides), collective("alltoall"), Options(chunks=chunks))
    assert schedule.round_count == bound(schedule) == steps


@pytest.mark.parametrize(("sides", "steps"), [((6, 6), 10), ((4, 4, 4), 12), ((5, 5), 6)])
def test_gossip_in_which_no_block_rests(sides, steps):
    """On bipartite tori, schedules in which no block waits have a bound of their own."""
    schedule = BUFFERLESS(Torus(sides), collective("allgather"), Options())
    assert schedule.round_count == bound(schedule) == steps
