"""`tf.spread`: the same transfers in other rounds, so that no two of them meet.

The judge is `tf.check`, which shares no code with the search.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers import few
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.algorithms.spreading import explain_spread
from torusfabric.algorithms.spreading.placement import Workload
from torusfabric.algorithms.spreading.precedence import Precedence
from torusfabric.algorithms.spreading.search import find_bounds, find_rounds
from torusfabric.algorithms.spreading.transfer_list import TransferList
from torusfabric.schedule import ALL, KeptSums

CIRCUIT, STORE = tf.Switching.CIRCUIT, tf.Switching.STORE_AND_FORWARD


def moves(sources, hops, payload=ALL):
    """Return the transfers of one round."""
    longest = max(map(len, hops), default=1)
    padded = [[*path, *[-1] * (longest - len(path))] for path in hops]
    return tf.Transfers(np.array(sources), np.array(padded).reshape(-1, longest), payload)


def blocks(*lists):
    """Return a payload that lists the blocks of each transfer."""
    ends = np.cumsum([0, *map(len, lists)])
    return tf.Listed(ends, np.array([*itertools.chain(*lists)], int))


def by_hand(topology, kind, *rounds, **fields) -> tf.Rounds:
    """Return a schedule of listed rounds; circuits, unless `fields` say otherwise."""
    topology = tf.parse_topology(topology)
    collective = tf.parse_collective(kind, root=fields.pop("root", None))
    known = {"switching": CIRCUIT, "algorithm": "by hand"} | fields
    return tf.Rounds(topology=topology, collective=collective, transfers=rounds, **known)


def with_rounds(schedule, change):
    """Return a schedule whose transfers are in the rounds that `change` makes of theirs."""
    listed = TransferList(schedule)
    return listed.with_rounds(np.asarray(change(listed.round)))


def transfers_of(schedule):
    """Return sender, path and blocks of all transfers, sorted."""
    every = TransferList(schedule).transfers
    paths = (tuple(port for port in path if port >= 0) for path in every.hops.tolist())
    lists = (tuple(sorted(ids.tolist())) for ids in every.listed.lists)
    return sorted(zip(every.source.tolist(), paths, lists, strict=True))


def spread_and_check(schedule):
    """Spread a schedule, check the result, and return the diagnosis."""
    found = explain_spread(schedule)
    tf.check(found.schedule)
    assert transfers_of(found.schedule) == transfers_of(schedule)
    if found.bounds is not None:
        assert found.schedule.steps >= found.bounds.rounds
    return found


# One collision


def scatter_by_hand(**fields):
    """Return a scatter on a ring of four, in one round of circuits of which two meet."""
    once = moves([0, 0, 0], [[0], [0, 0], [1]], blocks([1], [2], [3]))
    return by_hand("4", "scatter", once, root=0, **fields)


def test_circuits_that_cross_are_split():
    """Two circuits over one arc get two rounds; the third stays."""
    mine = scatter_by_hand()
    found = spread_and_check(mine)
    assert [len(each) for each in found.schedule.transfers] == [2, 1]
    assert found.bounds.rounds == 2
    assert found.busiest == "node 0 (0) port +0"
    (collision,) = found.collisions
    assert (collision.kind, collision.round, collision.node, collision.port) == ("arc", 1, 0, 0)
    assert collision.transfers == (0, 1)
    text = "Round 1: node 0 (0) port +0 carries 0>1 with block (0, 1, 0) and 0>1>2 with block"
    assert str(collision) == f"{text} (0, 2, 0)"


def test_ports_are_limits():
    """A node that may send one message a round needs a round for each."""
    found = spread_and_check(scatter_by_hand(ports=1))
    assert found.schedule.steps == 3
    assert found.kind_counts == {"arc": 1, "sends": 1}


def test_receivers_have_limits():
    """A node that may receive one message a round needs a round for each."""
    once = moves([1, 3], [[1], [0]], blocks([1], [3]))
    far = moves([2], [[0, 0]], blocks([2]))
    mine = by_hand("4", "gather", once, far, root=0, ports=1)
    found = spread_and_check(mine)
    assert (found.schedule.steps, found.kind_counts) == (3, {"receives": 1})
    assert "receives 3>0 with block (3, 0) beyond 1 in a round" in str(found.collisions[0])


def test_half_duplex_links():
    """In half duplex, both ways of a link count together."""
    both = moves([0, 1], [[0], [1]], blocks([0], [1]))
    mine = by_hand("mesh:2", "allgather", both, duplex="half", switching=STORE)
    found = spread_and_check(mine)
    assert (found.schedule.steps, found.kind_counts) == (2, {"link": 1})


def test_what_is_right_stays():
    """A schedule without collisions is returned as it is."""
    for mine in (tf.plan("4x4", "allgather"), tf.plan("5x5", "allgather", algorithm="bufferless")):
        assert tf.spread(mine) is mine
        assert tf.find_collisions(mine) == []


def test_early_blocks_are_delayed():
    """A block that arrives only in the same or a later round is sent after it has arrived."""
    first, then = moves([1], [[0]], blocks([0])), moves([0, 0], [[0], [1]], blocks([0], [0]))
    mine = by_hand("4", "broadcast", first, then, root=0, switching=STORE)
    found = spread_and_check(mine)
    assert (found.schedule.steps, found.kind_counts) == (2, {"early": 1})
    assert str(found.collisions[0]) == (
        "Round 1: node 1 (1) port +0 sends 1>2 with block (0, 0) before it holds it"
    )


# Schedules whose rounds are put together

PLANNED = [
    ("4x4", "allgather", "matching", {}),
    ("4x4", "alltoall", "matching", {}),
    ("5x5", "broadcast", "lee-code", {}),
    ("8x8", "broadcast", "max-flow", {}),
    ("4x4", "allgather@1", None, {}),
    ("3x3", "gather", "farthest-first", {}),
    ("mesh:4x4", "alltoall", "any-network", {}),
    ("arrowhead:2", "broadcast", "spanning-tree", {}),
    ("4x4", "reduce", "spanning-tree", {}),
    ("4x4", "allreduce", "spanning-tree", {}),
    ("4x4", "reduce-scatter", "matching", {}),
    ("4x4", "reduce@1", None, {}),
    ("4x4", "broadcast", "max-flow", {"ports": 2}),
]


@pytest.mark.parametrize(("topology", "kind", "algorithm", "options"), few(6, PLANNED), ids=str)
@pytest.mark.parametrize("together", [2, 1000])
def test_plans_are_found_again(topology, kind, algorithm, options, together):
    """If rounds of a plan are put together, the search finds a schedule as short as the plan."""
    plan = tf.plan(topology, kind, algorithm=algorithm, **options)
    found = spread_and_check(with_rounds(plan, lambda numbers: numbers // together))
    assert found.schedule.steps <= plan.steps


@pytest.mark.parametrize(
    ("topology", "kind", "algorithm", "ports", "duplex"),
    [
        ("4x4", "allgather", "matching", 1, "full"),
        ("4x4", "alltoall", "matching", 1, "full"),
        ("4x3", "reduce-scatter", "hamiltonian", 2, "full"),
        ("4x3", "reduce-scatter", "hamiltonian", 1, "half"),
    ],
)
def test_few_ports_are_busy_all_the_time(topology, kind, algorithm, ports, duplex):
    """A plan for all ports is spread for few of them, at the bound: no port is ever idle."""
    plan = tf.plan(topology, kind, algorithm=algorithm)
    rounds = tf.Rounds(**plan.head, transfers=tuple(plan.rounds()))
    mine = replace(rounds, ports=ports, duplex=duplex)
    found = spread_and_check(mine)
    assert found.schedule.steps == found.bounds.rounds


@st.composite
def shifted(draw):
    """Draw a plan whose transfers are moved to other rounds at random."""
    topology = draw(st.sampled_from(["3", "5", "2x2", "3x3", "4x3", "mesh:2x3", "cube:3"]))
    kind = draw(
        st.sampled_from(["broadcast", "scatter", "gather", "allgather", "alltoall", "reduce",
                         "reduce-scatter", "allreduce", "halo"])
    )  # fmt: skip
    names = ["spanning-tree", "matching", "max-flow", "hamiltonian", "any-network", None]
    try:
        plan = tf.plan(topology, kind, algorithm=draw(st.sampled_from(names)))
    except tf.InputError:
        assume(False)
    assume(not plan.keeps_sums)
    listed = TransferList(plan)
    assume(0 < len(listed) < 600)
    random = draw(st.randoms(use_true_random=False))
    change = draw(st.sampled_from(["near", "anywhere"]))
    if change == "near":
        rounds = [max(0, k + random.choice([0, 0, 1, -1, -2])) for k in listed.round]
    else:
        rounds = [random.randrange(plan.steps) for _ in listed.round]
    ports = random.randint(1, plan.ports)
    return replace(listed.with_rounds(np.array(rounds)), ports=ports)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(shifted())
def test_any_rounds_are_mended(mine):
    """Wherever transfers of a plan move, they are brought into an order that passes the check."""
    found = spread_and_check(mine)
    assert bool(found.collisions) == (found.schedule is not mine)
    listed = [each.to_json()["text"] for each in found.collisions]
    assert listed == [str(each) for each in tf.find_collisions(mine)]


def test_the_same_again():
    """The search has no hidden randomness."""
    mine = with_rounds(tf.plan("mesh:3x3", "alltoall"), lambda numbers: numbers * 0)
    assert tf.spread(mine) == tf.spread(mine)


def test_hardware_of_a_spread_schedule():
    """A schedule that was spread is built and simulated like any other."""
    right = tf.spread(with_rounds(tf.plan("3x3", "allgather"), lambda numbers: numbers // 2))
    assert tf.simulate(tf.Fabric(tf.compile(right, flits=2), width=8)).passed


# Sums


def doubling(kept):
    """Return an all-reduce on a ring of eight: in each round, distances are doubled."""
    rounds, nodes = [], np.arange(8)
    for distance in (1, 2, 4):
        up = (nodes & distance) == 0
        hops = [[0] * distance if each else [1] * distance for each in up]
        rounds.append(moves(nodes, hops, kept(nodes)))
    return by_hand("8", "allreduce", *rounds)


def test_exchanges_of_sums_stay_together():
    """Two nodes that exchange their sums do it in one round, also if paths of others cross."""
    mine = doubling(lambda nodes: KeptSums(np.zeros(8, int), np.full(8, -1)))
    right = tf.spread(mine)
    assert tf.check(right).transfers == 24
    assert right.steps <= 1 + 2 + 4  # a round for each path over an arc
    for transfers in right.rounds():
        ends = transfers.walk(right.topology)[:, [0, -1]].tolist()
        assert all([there, here] in ends for here, there in ends)


def test_two_chunks_share_the_arcs():
    """Kept sums of two chunks in the same rounds take turns."""
    single = doubling(lambda nodes: KeptSums(np.zeros(8, int), np.full(8, -1)))
    rounds = []
    for transfers in single.transfers:
        source, hops = (np.concatenate([each] * 2) for each in (transfers.source, transfers.hops))
        kept = KeptSums(np.repeat([0, 1], len(transfers)), np.full(2 * len(transfers), -1))
        rounds.append(tf.Transfers(source, hops, kept))
    right = tf.spread(replace(single, chunks=2, transfers=tuple(rounds)))
    assert tf.check(right).transfers == 48
    assert right.steps <= 2 * (1 + 2 + 4)


def test_words_that_are_passed_on():
    """A word that a node passes on is not overtaken by the next word from the same port.

    On a ring of three, node 1 gets the words of node 0 and, passed on by it, of node 2.
    """
    own, on = (
        KeptSums(np.zeros(3, int), np.full(3, -1)),
        KeptSums(np.zeros(3, int), np.ones(3, int)),
    )
    nodes, ports = np.arange(3), np.zeros((3, 1), int)
    twice = tf.Transfers(np.tile(nodes, 2), np.tile(ports, (2, 1)),
                         KeptSums(np.repeat([0, 1], 3), np.full(6, -1)))  # fmt: skip
    then = tf.Transfers(np.tile(nodes, 2), np.tile(ports, (2, 1)),
                        KeptSums(np.repeat([0, 1], 3), np.ones(6, int)))  # fmt: skip
    single = by_hand("3", "allreduce", tf.Transfers(nodes, ports, own),
                     tf.Transfers(nodes, ports, on), switching=STORE)  # fmt: skip
    assert tf.spread(single) is single
    right = tf.spread(replace(single, chunks=2, transfers=(twice, then)))
    assert (tf.check(right).transfers, right.steps) == (12, 4)


def test_exchanges_that_meet():
    """Three nodes pass their sums round in one round; two of the paths share an arc."""
    own, on = (
        KeptSums(np.zeros(3, int), np.full(3, -1)),
        KeptSums(np.zeros(3, int), np.array([0, 1, 0])),
    )
    first = moves([0, 1, 2], [[0], [1, 1], [1, 1]], own)
    mine = by_hand("3", "allreduce", first, moves([0, 1, 2], [[0], [0], [0]], on))
    message = r"Round 1: node 0 \(0\) port \+0 exchanges sums in one round with transfers that meet"
    for function in (tf.spread, tf.find_collisions):
        with pytest.raises(tf.ScheduleError, match=message):
            function(mine)


def test_partial_sums_in_the_wrong_order():
    """On a path of sums that begins at its end, each sum waits for the one before."""
    lists = [[0], [0, 1], [0, 1, 2]]
    rounds = [moves([k], [[0]], blocks(lists[k])) for k in (2, 1, 0)]
    mine = by_hand("mesh:4", "reduce", *rounds, root=3, switching=STORE)
    found = spread_and_check(mine)
    assert [each.source.tolist() for each in found.schedule.transfers] == [[0], [1], [2]]
    assert found.kind_counts == {"early": 2}


def test_a_word_waits_for_a_late_sum():
    """Node 1 sends its sum without the word of node 2, which waits until that sum has left."""
    mine = by_hand(
        "4",
        "reduce",
        moves([1, 2], [[0], [1]], blocks([0, 1], [2])),
        moves([0], [[0]], blocks([0])),
        moves([1], [[0]], blocks([2])),
        moves([2], [[0]], blocks([0, 1, 2])),
        root=3,
        switching=STORE,
    )
    found = spread_and_check(mine)
    assert [each.source.tolist() for each in found.schedule.transfers] == [[0], [1, 2], [1], [2]]


# Faults that no delay mends

WRONG = {
    "nobody has it": (
        by_hand("4", "scatter", moves([0, 2], [[0], [1]], blocks([1, 2, 3], [3])), root=0),
        r"Round 1: node 2 \(2\) port -0 sends block \(0, 3, 0\) before it holds it",
    ),
    "no link": (
        by_hand("mesh:3", "broadcast", moves([0, 0], [[0, 0], [1]], blocks([0], [0])), root=0),
        r"Round 1: node 0 \(0\) port -0 has no link",
    ),
    "missing": (
        by_hand("4", "scatter", moves([0, 0], [[0], [0, 0]], blocks([1], [2])), root=0),
        r"After 1 round: node 3 \(3\) ends without block \(0, 3, 0\)",
    ),
    "two hops": (
        by_hand("4", "broadcast", moves([0], [[0, 0]]), root=0, switching=STORE),
        "starts a path of more than one hop",
    ),
    "twice": (
        by_hand("3", "reduce", moves([1, 1], [[1], [0]], blocks([1], [1])), root=0),
        "sends the partial sum with block .* a second time",
    ),
    "ports": (scatter_by_hand(ports=3), "Ports must be 1 to 2, not 3"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_faults_that_stay(fault):
    """A fault that no delay mends is refused with the message of the check."""
    mine, message = WRONG[fault]
    for function in (tf.spread, tf.find_collisions):
        with pytest.raises(tf.ScheduleError, match=message):
            function(mine)


# The search


def fewest_rounds(work):
    """Return the fewest rounds of a workload, by trying all schedules."""
    count, edges = len(work.needs), [*zip(*work.precedence.list_edges(), strict=True)]
    for rounds in range(1, count + 2):
        for chosen in itertools.product(range(rounds), repeat=count):
            pairs = zip(chosen, work.needs, strict=True)
            used = {(when, each) for when, own in pairs for each in own}
            ordered = all(chosen[b] >= chosen[a] + lag for a, b, lag in edges)
            if ordered and len(used) == sum(map(len, work.needs)):
                return rounds
    raise AssertionError("units in a row always fit")


@st.composite
def workloads(draw):
    """Draw a small workload: units with one or two resources, and an order among them."""
    count = draw(st.integers(1, 5))
    needs = [sorted(draw(st.sets(st.integers(0, 2), min_size=1, max_size=2))) for _ in range(count)]
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = [(a, b, draw(st.integers(0, 1))) for a, b in pairs if draw(st.booleans())]
    before, after, lag = np.array(edges, int).reshape(-1, 3).T
    return Workload(
        Precedence.from_edges(before, after, lag, count), needs, [1] * 3, [1] * count, [0] * count
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(workloads())
def test_small_workloads_take_the_fewest_rounds(work):
    """On small workloads the search finds the optimum, and the bound is at most that."""
    fewest = fewest_rounds(work)
    bound = find_bounds(work).rounds
    rounds = find_rounds(work, bound)
    assert bound <= fewest == max(rounds) + 1
