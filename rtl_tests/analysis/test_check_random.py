"""The checker on random and on damaged schedules, compared with a checker that uses plain sets."""

from dataclasses import replace

import numpy as np
from check_model import SMALL, Model, explicit, faulty_round, first_fault, moves
from helpers import NAMED_COLLECTIVES
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check
from torusfabric.schedule import ALL, Grouped, Listed, Switching, Transfers
from torusfabric.topology import Torus


@st.composite
def played(draw):
    """Draw a random schedule whose faults are in its last round, or in missing blocks."""
    kind = draw(st.sampled_from(sorted(NAMED_COLLECTIVES)))
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
    """Return some random transfers that keep most rules."""
    topology, count = model.topology, model.blocks.n_blocks
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
    """Both checkers find the same first faulty round."""
    schedule, _ = case
    assert faulty_round(schedule) == first_fault(schedule)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(played())
def test_planted_faults_are_found(case):
    """After any damage to a transfer, both checkers find the same first faulty round."""
    schedule, random = case
    number = random.randrange(len(schedule.transfers))
    broken = damaged(random, schedule.transfers[number], schedule)
    rounds = list(schedule.transfers)
    rounds[number] = broken
    schedule = replace(schedule, transfers=tuple(rounds))
    assert faulty_round(schedule) == first_fault(schedule)


@st.composite
def summed(draw):
    """Draw a reduction along random paths to the goal of each sum, and back for an all-reduce."""
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
    """Return transfers that move some sums nearer to their goals, and spread complete sums."""
    topology, kind = model.topology, model.schedule.collective.kind
    arcs = [(v, p) for v in range(topology.nodes) for p in range(topology.ports)]
    steps, arrived = [], set()
    keys = sorted({model.key(b) for b in range(model.blocks.n_blocks)})
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
    """Complete reductions pass, with lists and with groups; damaged ones fail in both checkers."""
    schedule, random = case
    traffic = check(schedule)
    assert traffic.duplicates == 0
    keys = schedule.blocks.n_blocks // schedule.topology.nodes
    group = np.arange(schedule.blocks.n_blocks) % keys
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
    """Return a round with one random change."""
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
            ids[random.randrange(len(ids))] = random.randrange(schedule.blocks.n_blocks)
            payload = Listed(payload.indptr, ids)
        case "payload" if isinstance(payload, Grouped):
            wanted = payload.wanted.copy()
            wanted[k] = random.randrange(3)
            payload = Grouped(payload.group, wanted)
    return Transfers(source, hops, payload)
