"""The checker, against a second one that keeps plain Python sets and takes no shortcut."""

import re
from dataclasses import replace

import numpy as np
import pytest
from check_model import (
    END,
    Model,
    collective,
    explicit,
    first_fault,
    greedy_table,
    hamiltonian_pattern,
    lee_code,
    moves,
    ring,
    summing_table,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import COLLECTIVES, Collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.schedule import ALL, Duplex, Grouped, Listed, Pattern, Switching, Table, Transfers
from torusfabric.topology import Torus

SMALL = [(2,), (3,), (5,), (2, 2), (2, 3), (3, 3), (4, 3)]


def faulty_round(schedule, prove=check):
    """The round of the first fault by the checker under test, `END` after the last, or None."""
    try:
        prove(schedule)
    except ScheduleError as error:
        if error.round is None and re.match(r"After \d+ (step|round)s?: ", str(error)):
            return END
        return error.round if str(error).startswith(f"Round {error.round}: ") else str(error)
    return None


# The papers' examples.


def test_lee_code_of_the_paper():
    """Every figure of section 5 for i = 1: transfers, arcs, paths and messages."""
    traffic = check(lee_code())
    assert traffic.rounds == 4
    assert traffic.round_hops == (1, 5, 5, 1)
    assert traffic.round_blocks == (1, 7, 49, 343)
    assert (traffic.transfers, traffic.arcs_used) == (4 * 294, 294 + 1176 + 1372 + 294)


@pytest.mark.parametrize("sides", [(2, 2), (2, 6), (4, 4), (6, 4), (8, 8)])
@pytest.mark.parametrize("prove", [check, check_rounds])
def test_hamiltonian_cycles_take_half_the_nodes(sides, prove):
    """Theorem 1 of Meyer and Sibeyn is exact: one step less leaves a node without a block."""
    schedule = hamiltonian_pattern(*sides)
    nodes = schedule.topology.nodes
    traffic = prove(schedule)
    assert traffic.rounds == nodes // 2
    assert traffic.transfers == traffic.arcs_used == 4 * nodes * (nodes // 2)
    assert traffic.duplicates == 2 * nodes, "both ways meet at the opposite node"
    shorter = replace(schedule, steps=nodes // 2 - 1)
    with pytest.raises(
        ScheduleError, match=rf"^After {nodes // 2 - 1} steps?: node 0 .* ends without b"
    ):
        prove(shorter)


@pytest.mark.parametrize("sides", [(3,), (4,), (2, 2), (3, 3), (4, 4), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize(("kind", "chunks"), [("allgather", 1), ("allgather", 2), ("alltoall", 1)])
def test_tables_agree_with_their_transfers(sides, kind, chunks):
    """A table is judged by its offsets alone exactly as by all its transfers."""
    schedule = greedy_table(sides, kind, chunks)
    assert check(schedule) == check_rounds(schedule)
    assert first_fault(schedule) is None


# Rules, one at a time.

SWAP = moves((0, [0]), (1, [1]), (2, [1]), (0, [1]))
HALF = {"duplex": "half", "ports": 1}
FAULTS = [
    (explicit((3,), "broadcast", moves((0, [0]), (0, [1]), (0, [0]))),
     r"Round 1: node 0 \(0\) port \+0 carries two messages at once", (1, 0, 0, None)),
    (explicit((3,), "allgather", moves((0, [0]), (1, [1])), **HALF),
     r"Round 1: node 1 \(1\) port -0 carries two messages at once \(half duplex", (1, 1, 1, None)),
    (explicit((3,), "broadcast", moves((0, [0]), (0, [1])), ports=1),
     r"Round 1: node 0 \(0\) port -0 sends message 2 of at most 1 in a round", (1, 0, 1, None)),
    (explicit((3,), "gather", moves((1, [1]), (2, [0])), ports=1),
     r"Round 1: node 0 \(0\) port -0 receives message 2 of at most 1 in a round", (1, 0, 1, None)),
    (explicit((3,), "broadcast", moves((0, [0, 0])), switching=Switching.STORE_AND_FORWARD),
     r"Round 1: node 0 \(0\) port \+0 starts a path of more than one hop", (1, 0, 0, None)),
    (explicit((3,), "broadcast", Transfers(np.array([0]), np.array([[-1]], np.int8))),
     r"Round 1: node 0 \(0\) starts a path without a hop", (1, 0, None, None)),
    (explicit((3,), "broadcast", Transfers(np.array([0]), np.array([[0, -1, 1]], np.int8))),
     r"Round 1: node 0 \(0\) port \+0 starts a path that goes on after its end", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [7]))),
     r"Round 1: node 0 \(0\) starts a path through a port that is none", (1, 0, None, None)),
    (explicit((3,), "broadcast", moves((5, [0]))),
     r"Round 1: transfer 1 starts at node 5, not at one of 0 to 2", (1, None, None, None)),
    (explicit((3,), "broadcast", moves((1, [0]))),
     r"Round 1: node 1 \(1\) port \+0 sends a message without a block", (1, 1, 0, None)),
    (explicit((3,), "broadcast", moves((0, [0], []))),
     r"Round 1: node 0 \(0\) port \+0 sends a message without a block", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [0], [3]))),
     r"Round 1: node 0 \(0\) port \+0 sends a block that does not exist", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [0], [0]), (1, [0], [0]))),
     r"Round 1: node 1 \(1\) port \+0 sends block \(0, 0\) before it holds it", (1, 1, 0, (0, 0))),
    (explicit((4,), "broadcast", moves((0, [0]), (0, [1])), moves((1, [1]))),
     r"After 2 rounds: node 2 \(2\) ends without block \(0, 0\)", (None, 2, None, (0, 0))),
    (explicit((2,), "alltoall", moves((0, [0], [1]))),
     r"After 1 round: node 0 \(0\) ends without block \(1, 0, 0\)", (None, 0, None, (1, 0, 0))),
    (explicit((3,), "reduce", moves((1, [1], [1]), (1, [0], [1]))),
     r"Round 1: node 1 \(1\) port \+0 sends the partial sum with block \(1, 0\) a second time",
     (1, 1, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [0])), moves((2, [0], [1]))),
     r"Round 2: node 2 \(2\) port \+0 sends less than its whole partial sum with block \(1, 0\)",
     (2, 2, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [0])), moves((2, [0], [1, 1]))),
     r"Round 2: node 2 \(2\) port \+0 lists block \(1, 0\) twice", (2, 2, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [1], [1])), moves((1, [1], [1]))),
     r"Round 2: node 1 \(1\) port -0 sends block \(1, 0\) before it holds it", (2, 1, 1, (1, 0))),
    (explicit((3,), "allreduce", moves((1, [1]), (2, [0])), moves((0, [0])), moves((0, [0]))),
     r"Round 3: node 0 \(0\) port \+0 sends block \(0, 0\), which is counted twice",
     (3, 0, 0, (0, 0))),
    (explicit((3,), "reduce", moves((1, [1]))),
     r"After 1 round: node 0 \(0\) ends without block \(2, 0\)", (None, 0, None, (2, 0))),
    (explicit((3,), "reduce-scatter", moves((1, [1]), (2, [0]))),
     r"After 1 round: node 1 \(1\) ends without block \(0, 1, 0\)", (None, 1, None, (0, 1, 0))),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "message", "place"), FAULTS)
def test_fault_is_named(schedule, message, place):
    """A fault is named in one line with round, node, port and block, and again as attributes."""
    with pytest.raises(ScheduleError, match=f"^{message}") as info:
        check(schedule)
    error = info.value
    assert (error.round, error.node, error.port, error.block) == place
    if place[1] is not None:
        assert first_fault(schedule) == (place[0] or END)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ports": 3}, "Ports must be 1 to 2, not 3"),
        ({"ports": 0}, "Ports must be 1 to 2, not 0"),
        ({"chunks": 0}, "Chunks must be positive, not 0"),
        ({"collective": Collective("broadcast", 9)}, "Root must be a node from 0 to 2, not 9"),
    ],
)
def test_schedule_must_make_sense(fields, message):
    """What a schedule says of itself is checked first."""
    with pytest.raises(ScheduleError, match=f"^{message}$"):
        check(explicit((3,), "broadcast", **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"switching": "wormhole"},
            "Switching must be store-and-forward or circuit, not 'wormhole'",
        ),
        ({"duplex": "no"}, "Duplex must be full or half, not 'no'"),
    ],
)
def test_the_model_is_one_of_few(fields, message):
    """A schedule cannot be made for another model."""
    with pytest.raises(InputError, match=f"^{message}$"):
        explicit((3,), "broadcast", **fields)


def test_parallel_links_are_distinguished():
    """On a side of 2 both links may carry a message each, even in half duplex."""
    both = moves((0, [0]), (0, [1]))
    assert check(explicit((2,), "broadcast", both, duplex="half")).duplicates == 1
    crossing = moves((0, [0]), (1, [0]))
    check(explicit((2,), "allgather", crossing, duplex="half"))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 1 .* carries two messages"):
        check(explicit((2,), "allgather", moves((0, [0]), (1, [1])), duplex="half"))


def test_first_fault_wins():
    """A fault of an early round is found even if a later round breaks a simpler rule."""
    late = moves((0, [0]), (0, [0]))
    early = moves((1, [0], [0]))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 1 ") as info:
        check(explicit((3,), "broadcast", early, late))
    assert info.value.round == 1


def test_partial_sums_may_change_places():
    """Two nodes exchange their partial sums in one round: both move, neither is doubled."""
    swap, fold = moves((0, [0]), (1, [1])), moves((1, [1]), (2, [0]))
    assert check(explicit((3,), "reduce", swap, fold)).round_blocks == (1, 1)


def test_empty_schedule_of_a_single_owner():
    """Without rounds all are missing what the others have."""
    with pytest.raises(
        ScheduleError, match=r"^After 0 rounds: node 0 \(0\) ends without block \(1, 0\)$"
    ):
        check(explicit((2,), "allgather"))


def test_progress_is_reported():
    """Progress ends at the whole."""
    seen = []
    check(lee_code(), progress=lambda *args: seen.append(args))
    assert seen[-1] == (4, 4)
    check(ring(6, 3), progress=lambda *args: seen.append(args))
    assert seen[-1][0] == seen[-1][1]


def test_several_passes_find_the_same(monkeypatch):
    """Blocks followed in many passes give the same traffic and the same first fault."""
    schedule = lee_code()
    whole = check(schedule)
    broken = replace(schedule, transfers=schedule.transfers[:3])
    monkeypatch.setattr("torusfabric.analysis.check.blocks.BUDGET", 343 * 8 * 2)
    monkeypatch.setattr("torusfabric.analysis.check.blocks.CHUNK", 1)
    assert check(schedule) == whole
    with pytest.raises(
        ScheduleError, match=r"^After 3 rounds: node 1 \(0,0,1\) ends without block \("
    ):
        check(broken)
    monkeypatch.setattr("torusfabric.analysis.check.sums.BUDGET", 1)
    check(explicit((2,), "reduce-scatter", moves((0, [0], [1]), (1, [0], [2]))))


# Random schedules, most of them nearly right.


@st.composite
def played(draw):
    """A random schedule in which only the last round and the end may be wrong."""
    kind = draw(st.sampled_from(sorted(COLLECTIVES)))
    sides = draw(st.sampled_from(SMALL))
    topology = Torus(sides)
    store = draw(st.booleans())
    random = draw(st.randoms(use_true_random=False))
    schedule = explicit(
        sides, kind, root=random.randrange(topology.nodes), chunks=random.choice([1, 1, 2]),
        switching=Switching.STORE_AND_FORWARD if store else "circuit",
        ports=random.randint(1, topology.ports), duplex=random.choice(["full", "full", "half"]),
    )  # fmt: skip
    model, rounds = Model(schedule), []
    for _ in range(draw(st.integers(1, 9))):
        transfers = random_round(random, model, store)
        trial = Model(schedule)
        trial.held = [set(held) for held in model.held]
        if len(transfers) and not trial.play(transfers):
            continue
        model = trial
        rounds.append(transfers)
    assume(rounds)
    return replace(schedule, transfers=tuple(rounds)), random


def random_round(random, model, store):
    """Some transfers that keep most rules."""
    topology, count = model.topology, model.blocks.count
    form = random.choice(["all", "listed", "grouped"])
    modulus = random.choice([1, 2, max(1, count // topology.nodes)])
    steps: list[tuple] = []
    used: set[tuple] = set()
    wanted: list[int] = []
    for _ in range(random.randint(1, 2 * topology.nodes)):
        node = random.randrange(topology.nodes)
        path = [
            random.randrange(topology.ports) for _ in range(1 if store else random.choice([1, 2]))
        ]
        if not model.held[node] or (node, path[0]) in used:
            continue
        used.add((node, path[0]))
        block = random.choice(sorted(model.held[node]))
        ids = [block]
        if model.reducing:
            ids = sorted(model.sum_of(model.held[node], model.key(block)))
        trial = [*steps, (node, path, ids)]
        if model.reducing and any(s[0] == node for s in steps):
            continue
        steps, wanted = trial, [*wanted, block % modulus]
    if not steps:
        return Transfers(np.empty(0, int), np.empty((0, 1), np.int8))
    listed = moves(*steps)
    if form == "listed":
        return listed
    payload = ALL if form == "all" else Grouped(np.arange(count) % modulus, np.array(wanted))
    return Transfers(listed.source, listed.hops, payload)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(played())
def test_verdicts_agree(case):
    """Both checkers find the same first faulty round, and count the same."""
    schedule, _ = case
    assert faulty_round(schedule) == first_fault(schedule)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(played())
def test_planted_faults_are_found(case):
    """Whatever is done to a transfer, both checkers agree on the first faulty round."""
    schedule, random = case
    number = random.randrange(len(schedule.transfers))
    broken = damaged(random, schedule.transfers[number], schedule)
    rounds = list(schedule.transfers)
    rounds[number] = broken
    schedule = replace(schedule, transfers=tuple(rounds))
    assert faulty_round(schedule) == first_fault(schedule)


@st.composite
def summed(draw):
    """A reduction along random walks towards where each sum belongs, then back for all-reduce."""
    kind = draw(st.sampled_from(["reduce", "reduce-scatter", "allreduce"]))
    topology = Torus(draw(st.sampled_from(SMALL)))
    random = draw(st.randoms(use_true_random=False))
    schedule = explicit(
        topology.sides, kind, root=random.randrange(topology.nodes), chunks=random.choice([1, 2])
    )
    model, rounds = Model(schedule), []
    while not model.complete():
        steps = summing_round(random, model)
        if steps:
            rounds.append(moves(*steps))
            assert model.play(rounds[-1])
    return replace(schedule, transfers=tuple(rounds)), random


def summing_round(random, model):
    """Some sums move a hop nearer to their goal, complete ones to all who lack them."""
    topology, kind = model.topology, model.schedule.collective.kind
    arcs = [(v, p) for v in range(topology.nodes) for p in range(topology.ports)]
    steps, arrived = [], set()
    keys = sorted({model.key(b) for b in range(model.blocks.count)})
    gone = set()
    for node, port in random.sample(arcs, len(arcs)):
        key, there = random.choice(keys), int(topology.neighbours[node, port])
        ids = sorted(model.sum_of(model.held[node], key))
        goal = key[0] if kind == "reduce-scatter" else model.schedule.collective.root or 0
        whole = len(ids) == topology.nodes
        nearer = topology.distance(there, goal) < topology.distance(node, goal)
        lacks = not model.sum_of(model.held[there], key) and (there, key) not in arrived
        useful = (lacks and kind == "allreduce") if whole else nearer
        if ids and useful and (node, key) not in gone:
            gone |= set() if whole else {(node, key)}
            arrived.add((there, key))
            steps.append((node, [port], random.sample(ids, len(ids))))
    return steps


@settings(derandomize=True, deadline=None, max_examples=50)
@given(summed())
def test_reductions(case):
    """Complete reductions pass, as lists and as groups by key; damaged ones fail for both."""
    schedule, random = case
    traffic = check(schedule)
    assert traffic.duplicates == 0
    keys = schedule.blocks.count // schedule.topology.nodes
    group = np.arange(schedule.blocks.count) % keys
    grouped = replace(schedule, transfers=tuple(
        Transfers(t.source, t.hops, Grouped(group, group[t.payload.ids[t.payload.indptr[:-1]]]))
        for t in schedule.transfers
    ))  # fmt: skip
    assert check(grouped) == traffic
    number = random.randrange(len(schedule.transfers))
    for whole in (schedule, grouped):
        rounds = list(whole.transfers)
        rounds[number] = damaged(random, rounds[number], whole)
        broken = replace(whole, transfers=tuple(rounds))
        assert faulty_round(broken) == first_fault(broken)


def damaged(random, transfers, schedule):
    """A round with one thing changed."""
    source, hops, payload = transfers.source.copy(), transfers.hops.copy(), transfers.payload
    if not len(source):
        return transfers
    k = random.randrange(len(source))
    match random.choice(["drop", "redirect", "double", "copy", "payload", "move"]):
        case "drop" | "double" | "copy" as what:
            keep = np.delete(np.arange(len(source)), k)
            if what != "drop":
                keep = np.append(np.arange(len(source)), k)
            source, hops = source[keep], hops[keep]
            if what == "copy":
                hops[-1, 0] = random.randrange(schedule.topology.ports)
            if isinstance(payload, Grouped):
                payload = Grouped(payload.group, payload.wanted[keep])
            if isinstance(payload, Listed):
                lists = np.split(payload.ids, payload.indptr[1:-1])
                lists = [lists[i] for i in keep]
                sizes = [len(x) for x in lists]
                payload = Listed(np.cumsum([0, *sizes]), np.concatenate([*lists, []]).astype(int))
        case "redirect":
            hops[k, 0] = random.randrange(schedule.topology.ports)
        case "move":
            source[k] = random.randrange(schedule.topology.nodes)
        case "payload" if isinstance(payload, Listed):
            ids = payload.ids.copy()
            ids[random.randrange(len(ids))] = random.randrange(schedule.blocks.count)
            payload = Listed(payload.indptr, ids)
        case "payload" if isinstance(payload, Grouped):
            wanted = payload.wanted.copy()
            wanted[k] = random.randrange(3)
            payload = Grouped(payload.group, wanted)
    return Transfers(source, hops, payload)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    st.sampled_from(SMALL),
    st.sampled_from(["allgather", "broadcast", "gather"]),
    st.integers(1, 2),
    st.integers(1, 12),
    st.sampled_from(["full", "half"]),
    st.randoms(use_true_random=False),
)
def test_random_patterns(sides, kind, chunks, steps, duplex, random):
    """Patterns are judged without walking through them exactly as step by step."""
    topology = Torus(sides)
    shape = topology.nodes, topology.ports
    feed = np.array([random.randint(-1, topology.ports - 1) for _ in range(np.prod(shape))])
    inject = np.array([random.randint(-1, chunks - 1) for _ in range(np.prod(shape))])
    full = random.random() < 0.7
    root = random.randrange(topology.nodes)
    feed, inject = feed.reshape(shape), inject.reshape(shape)
    if random.random() < 0.5:
        feed = np.maximum(feed, 0)
    if kind == "broadcast" and random.random() < 0.9:
        inject[np.arange(topology.nodes) != root] = -1
    pattern = Pattern(
        topology=topology, collective=collective(kind, root), algorithm="random", chunks=chunks,
        switching=Switching.STORE_AND_FORWARD, steps=steps,
        duplex=duplex if not full else Duplex.FULL,
        ports=topology.ports if full else random.randint(1, topology.ports),
        feed=feed, inject=inject,
    )  # fmt: skip
    assert faulty_round(pattern) == faulty_round(pattern, check_rounds) == first_fault(pattern)
    if faulty_round(pattern) is None:
        assert check(pattern) == check_rounds(pattern)


@pytest.mark.parametrize("kind", ["allgather", "broadcast"])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6, 7, 31, 64])
@pytest.mark.parametrize("extra", [-1, 0, 1, 50])
def test_rings(kind, nodes, extra):
    """A ring needs floor(n / 2) steps; further ones only add duplicates."""
    pattern = ring(nodes, nodes // 2 + extra, kind=kind)
    if extra < 0:
        assert faulty_round(pattern) == faulty_round(pattern, check_rounds) == END
        return
    traffic = check(pattern)
    assert traffic == check_rounds(pattern)
    senders = nodes if kind == "allgather" else 1
    assert traffic.transfers == 2 * senders * (nodes // 2 + extra)
    assert traffic.duplicates == traffic.transfers - senders * (nodes - 1)


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_keep_ports_and_links(prove):
    """A pattern that uses all ports, or both ways of a link, is refused where it may not."""
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* sends message 2 of at most 1"):
        prove(replace(ring(5, 2), ports=1))
    with pytest.raises(ScheduleError, match=r"^Round 1: node \d .* carries two .* \(half duplex"):
        prove(replace(ring(5, 2), duplex="half"))
    alone = replace(ring(3, 1, kind="broadcast"), ports=1, feed=np.full((3, 2), -1))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* sends message 2 of at most 1"):
        prove(alone)
    inject = np.array([[-1, -1], [-1, 0], [0, -1]])
    inward = replace(alone, collective=collective("gather"), inject=inject)
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* receives message 2 of at most 1"):
        prove(inward)
    one_way = replace(
        ring(5, 4), feed=np.tile([1, -1], (5, 1)), inject=np.tile([0, -1], (5, 1)), ports=1,
        duplex="half",
    )  # fmt: skip
    assert prove(one_way).duplicates == 0


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_may_use_ports_in_turn(prove):
    """More ports than allowed may be in use if no step uses too many of them."""
    around_and_back = replace(
        ring(3, 4, kind="broadcast"), ports=1, feed=np.array([[-1, 1], [1, -1], [1, -1]]),
        inject=np.array([[0, -1], [-1, -1], [-1, -1]]),
    )  # fmt: skip
    traffic = prove(around_and_back)
    assert (traffic.transfers, traffic.duplicates) == (4, 2)


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_tables_may_not_forward_at_once(prove):
    """What arrives in a step leaves in the next at the earliest."""
    table = Table(
        topology=Torus([5]), collective=collective("allgather"), algorithm="by hand", ports=2,
        switching=Switching.STORE_AND_FORWARD, offset=np.array([[1, 4], [2, 3]]),
        chunk=np.zeros((2, 2), int),
    )  # fmt: skip
    assert prove(table).duplicates == 0
    turned = replace(table, topology=Torus([2, 3]), ports=4, offset=np.array([[3, -1, 4, -1]]),
                     chunk=np.zeros((1, 4), int))  # fmt: skip
    with pytest.raises(
        ScheduleError, match=r"^Round 1: node 0 \(0,0\) port \+1 sends block \(3, 0"
    ):
        prove(turned)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([(2, 2), (4, 2), (4, 4), (6, 4)]), st.data())
def test_stolen_feeds_are_found(sides, data):
    """Any change to a perfect pattern is judged alike by all three."""
    pattern = hamiltonian_pattern(*sides)
    feed, inject = pattern.feed.copy(), pattern.inject.copy()
    node = data.draw(st.integers(0, len(feed) - 1))
    port = data.draw(st.integers(0, 3))
    if data.draw(st.booleans()):
        feed[node, port] = data.draw(st.integers(-1, 3))
    else:
        inject[node, port] = data.draw(st.integers(-1, 1))
    broken = replace(pattern, feed=feed, inject=inject)
    assert faulty_round(broken) == faulty_round(broken, check_rounds) == first_fault(broken)


TABLES = [
    (greedy_table((3, 3)), 0), (greedy_table((5,), chunks=2), 0), (greedy_table((4, 2)), 0),
    (greedy_table((3, 3), "alltoall"), 1), (greedy_table((2, 3), "alltoall"), 1),
]  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.sampled_from(TABLES), st.booleans(), st.data())
def test_damaged_tables(case, half, data):
    """A table with some entries changed is judged alike by all three, to the same place."""
    table, personal = case
    offset, chunk = table.offset.copy(), table.chunk.copy()
    destination = table.destination.copy() if personal else None
    for _ in range(data.draw(st.integers(0, 2))):
        step = data.draw(st.integers(0, len(offset) - 1))
        port = data.draw(st.integers(0, offset.shape[1] - 1))
        what = data.draw(st.sampled_from([offset, chunk] + [destination] * personal))
        top = table.chunks if what is chunk else table.topology.nodes
        what[step, port] = data.draw(st.integers(-1 if what is offset else 0, top - 1))
    ports = data.draw(st.sampled_from([table.ports, table.ports, 1]))
    table = replace(
        table, offset=offset, chunk=chunk, destination=destination, ports=ports,
        duplex="half" if half else "full",
    )  # fmt: skip
    quick, followed = faulty_round(table), faulty_round(table, check_rounds)
    assert quick == followed == first_fault(table)
    if quick is None:
        assert check(table) == check_rounds(table)


@pytest.mark.parametrize("sides", [(2,), (3,), (4,), (2, 2), (3, 3), (2, 3)])
@pytest.mark.parametrize("kind", ["reduce-scatter", "allreduce"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_tables_of_sums_agree_with_their_transfers(sides, kind, chunks):
    """A table of sums is judged by one owner exactly as by all its transfers."""
    schedule = summing_table(sides, kind, chunks)
    assert check(schedule) == check_rounds(schedule)
    assert first_fault(schedule) is None


SUMMING = [
    summing_table((3, 3), "reduce-scatter"), summing_table((5,), "reduce-scatter", 2),
    summing_table((2, 2), "allreduce"), summing_table((4,), "allreduce", 2),
    summing_table((3,), "allreduce"),
]  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.sampled_from(SUMMING), st.sampled_from(["full", "full", "half"]), st.data())
def test_damaged_tables_of_sums(table, duplex, data):
    """A table of sums with some entries changed is judged alike by all three."""
    offset, chunk = table.offset.copy(), table.chunk.copy()
    for _ in range(data.draw(st.integers(0, 2))):
        step = data.draw(st.integers(0, len(offset) - 1))
        port = data.draw(st.integers(0, offset.shape[1] - 1))
        what = data.draw(st.sampled_from([offset, chunk]))
        top = chunk.max() if what is chunk else table.topology.nodes - 1
        what[step, port] = data.draw(st.integers(-1 if what is offset else 0, int(top)))
    reducing = table.reducing + data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    ports = data.draw(st.sampled_from([table.ports, table.ports, 1]))
    table = replace(
        table, offset=offset, chunk=chunk, ports=ports, duplex=duplex, reducing=reducing
    )  # fmt: skip
    assert faulty_round(table) == faulty_round(table, check_rounds) == first_fault(table)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"offset": np.full((1, 2), 9)},
            "Round 1: node 0 .* sends a block whose offset does not",
        ),
        ({"chunk": np.full((1, 2), 1)}, "Round 1: node 0 .* sends a block whose chunk does not"),
        ({"chunk": np.zeros((2, 2), int)}, "The entries of a table must have shape"),
        ({"collective": Collective("alltoall")}, "A table for alltoall needs destinations"),
    ],
)
def test_malformed_tables(fields, message):
    """Entries that name nothing are refused before they are looked up."""
    table = greedy_table((3,))
    with pytest.raises(ScheduleError, match=f"^{message}"):
        check(replace(table, **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"feed": np.full((4, 2), 2)},
            r"Round 1: node 0 \(0\) port \+0 is fed by a port that is none",
        ),
        ({"inject": np.full((4, 2), 2)}, "Round 1: node 0 .* sends a block that does not exist"),
        ({"feed": np.zeros((3, 2), int)}, "The tables of a pattern must have shape"),
        ({"steps": -1}, "Steps must not be negative, not -1"),
        (
            {"collective": Collective("scatter", 0)},
            "A pattern cannot address the blocks of scatter",
        ),
    ],
)
@pytest.mark.parametrize("prove", [check, check_rounds])
def test_malformed_patterns(fields, message, prove):
    """Entries that name nothing are refused before they are looked up."""
    with pytest.raises(ScheduleError, match=f"^{message}"):
        prove(replace(ring(4, 2), **fields))


@pytest.mark.long
def test_large_pattern():
    """64 x 64 Hamiltonian cycles, both ways of checking."""
    schedule = hamiltonian_pattern(64, 64)
    assert check(schedule) == check_rounds(schedule)
