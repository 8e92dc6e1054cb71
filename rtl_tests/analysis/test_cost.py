"""The cost of a schedule, and the use of its links."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from check_model import explicit, moves, ring
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.analysis.check import check, check_rounds
from torusfabric.analysis.cost import ScheduleCost, schedule_cost
from torusfabric.analysis.facts import facts_text, schedule_facts
from torusfabric.analysis.link_use import busy_arcs, measure_link_use
from torusfabric.cli import main
from torusfabric.collective import Collective
from torusfabric.draw import heat_map
from torusfabric.schedule import Grouped, Listed, Pattern, Switching, Table, Transfers
from torusfabric.topology import Torus


def doubling(order):
    """Return an all-gather on a ring: in stage i, partners at distance 2^i swap all they hold."""
    nodes = 2**order
    rounds = []
    for i in range(order):
        here = np.arange(nodes)
        up = here >> i & 1 == 0
        hops = np.repeat(np.where(up, 0, 1)[:, None], 2**i, axis=1).astype(np.int8)
        rounds += [Transfers(here[part], hops[part]) for part in halves(here, i)]
    return explicit((nodes,), "allgather", *rounds, ports=1)


def halves(here, i):
    """Return rounds in which paths of 2^i hops share no arc, by their start modulo 2^i."""
    return [np.flatnonzero(here % 2**i == j) for j in range(2**i)]


def table(nodes):
    """Return an all-gather on a ring as a table: offsets 1, 2, ..

    upwards and -1, -2, .. downwards.
    """
    steps = nodes // 2
    offset = np.array([[t, -t % nodes] for t in range(1, steps + 1)])
    if nodes % 2 == 0:
        offset[-1, 1] = -1
    return Table(
        topology=Torus([nodes]), collective=Collective("allgather"), algorithm="table",
        switching=Switching.STORE_AND_FORWARD, ports=2, offset=offset, chunk=np.zeros_like(offset),
    )  # fmt: skip


def test_doubling_by_hand():
    """On four nodes the costs are one round of exchanges and two rounds of 2-hop paths."""
    cost = schedule_cost(doubling(2))
    assert (cost.rounds, cost.delta, cost.tau) == (3, 1 + 2 + 2, 1 + 2 + 2)
    assert cost.transfers == 8


@pytest.mark.parametrize("order", range(1, 7))
def test_doubling_closed_form(order):
    """Stage i takes 2^i rounds of 2^i hops and 2^i blocks, so delta and tau grow by 4^i."""
    schedule = doubling(order)
    traffic = check(schedule)
    assert traffic.duplicates == 0
    assert schedule_cost(schedule) == schedule_cost(schedule, traffic)
    assert schedule_cost(schedule).tau == schedule_cost(schedule).delta == (4**order - 1) // 3
    assert schedule_cost(schedule).transfers == order * 2**order


@pytest.mark.parametrize("nodes", range(2, 12))
@pytest.mark.parametrize("chunks", [1, 2])
def test_ring_closed_form(nodes, chunks):
    """A step with messages of 1 / chunks counts 1 / chunks in tau, by all three ways to count."""
    steps = nodes // 2 if chunks == 1 else nodes - 1
    schedule = ring(nodes, steps, chunks=chunks)
    cost = schedule_cost(schedule)
    assert (
        cost
        == schedule_cost(schedule, check(schedule))
        == schedule_cost(schedule, check_rounds(schedule))
    )
    assert cost.tau == Fraction(steps, chunks)
    assert cost.transfers == 2 * nodes * steps


@pytest.mark.parametrize("nodes", range(2, 12))
def test_table_closed_form(nodes):
    """A table moves every block exactly once to every node."""
    cost = schedule_cost(table(nodes))
    assert cost == schedule_cost(table(nodes), check_rounds(table(nodes)))
    assert cost.transfers == nodes * (nodes - 1)


def test_idle_steps_cost_their_start():
    """Idle steps count as steps, and add nothing to tau."""
    schedule = table(5)
    idle = replace(
        schedule,
        offset=np.vstack([[[-1, -1]], schedule.offset]),
        chunk=np.vstack([[[0, 0]], schedule.chunk]),
    )
    assert schedule_cost(idle).rounds == schedule_cost(schedule).rounds + 1
    assert schedule_cost(idle).tau == schedule_cost(schedule).tau


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(1, 9), st.sampled_from([(3,), (2, 2), (3, 2)]), st.data())
def test_any_pattern_is_counted_without_walking(steps, sides, data):
    """The closed count of a pattern equals the count of its listed transfers, complete or not."""
    topology = Torus(sides)
    shape = topology.nodes, topology.ports
    arcs = shape[0] * shape[1]
    cells = st.lists(st.integers(-1, 0), min_size=arcs, max_size=arcs)
    ports = st.lists(st.integers(-1, topology.ports - 1), min_size=arcs, max_size=arcs)
    pattern = Pattern(
        topology=topology, collective=Collective("allgather"), algorithm="any", ports=shape[1],
        switching=Switching.STORE_AND_FORWARD, steps=steps,
        feed=np.reshape(data.draw(ports), shape), inject=np.reshape(data.draw(cells), shape),
    )  # fmt: skip
    sizes = [len(transfers) for transfers in pattern.rounds()]
    cost = schedule_cost(pattern)
    assert cost.transfers == sum(sizes)
    assert cost.delta == cost.tau == sum(size > 0 for size in sizes)


def test_partial_sums_count_once():
    """A message with the sum of ten contributions is as long as one with a single contribution."""
    transfers = [moves((v, [1])) for v in range(9, 0, -1)]
    options = {"switching": Switching.STORE_AND_FORWARD, "ports": 1}
    schedule = explicit((10,), "reduce", *transfers, **options)
    assert schedule_cost(schedule).tau == 9


def test_groups_count_what_is_held():
    """A grouped message is as long as the part of its group that the sender holds."""
    gather = moves((1, [1]), (3, [0]))
    group = np.array([0, 1, 1, 1])
    pieces = Transfers(
        np.array([0, 0]), np.array([[0], [1]], np.int8), Grouped(group, np.array([1, 0]))
    )
    rest = Transfers(np.array([2]), np.array([[0]], np.int8), Listed.single(np.array([2])))
    last = replace(rest, source=np.array([3]))
    schedule = explicit((4,), "gather", gather, pieces, rest, last)
    assert check(schedule).round_blocks == (1, 2, 1, 1)


def test_time_of_both_switchings():
    """Circuits pay alpha and delta, store-and-forward pays beta, and both pay for the length."""
    circuit = ScheduleCost(Switching.CIRCUIT, 4, 12, Fraction(400), 1176)
    assert circuit.time(alpha=7, delta=5, tau=Fraction(1, 8), length=16) == 28 + 60 + 800
    assert circuit.time(beta=99) == 0
    forward = ScheduleCost(Switching.STORE_AND_FORWARD, 8, 8, Fraction(4), 256)
    assert forward.time(alpha=99, beta=3, delta=99, tau=2, length=10) == 24 + 80


SELECTIONS = [
    ("4x4", "allgather", "hamiltonian", "pattern"),
    ("3x3", "alltoall", "matching", "table"),
    ("2x3", "allreduce", "matching", "table"),
    ("3x4", "scatter", "matching", "rounds"),
    ("5x5", "broadcast", "lee-code", "rounds"),
    ("3x4", "alltoall@1", None, "table"),
    ("4x4", "allgather@0", "hamiltonian", "pattern"),
    ("2x2x3", "broadcast@0+2", "max-flow", "rounds"),
    ("2x2x3", "broadcast@0+2", None, "pattern"),
]


def counted(schedule):
    """Yield the arcs of all paths, round by round."""
    for transfers in schedule.rounds():
        nodes = transfers.walk(schedule.topology)
        yield Counter(
            (int(nodes[k, hop]), int(port))
            for k, ports in enumerate(transfers.hops)
            for hop, port in enumerate(ports)
            if port >= 0
        )


@pytest.mark.parametrize(("topology", "collective", "algorithm", "form"), SELECTIONS)
def test_all_forms(topology, collective, algorithm, form):
    """The use of links counts each arc once per round, for every form of schedule."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert schedule.form == form
    rounds = list(counted(schedule))
    use = measure_link_use(schedule)
    assert use.of_round.tolist() == [len(arcs) for arcs in rounds]
    total: Counter[tuple[int, int]] = sum(rounds, Counter())
    assert {arc: int(use.of_arc[arc]) for arc in total} == dict(total)
    assert use.of_arc.sum() == sum(total.values())
    assert use.n_unused_arcs == use.of_arc.size - len(total)
    for busy, arcs in zip(busy_arcs(schedule), rounds, strict=True):
        assert set(zip(*map(np.ndarray.tolist, np.nonzero(busy)), strict=True)) == set(arcs)


def test_in_words():
    """The report states the use of links in words."""
    schedule = tf.plan("4x4", "reduce-scatter", algorithm="matching")
    facts = schedule_facts(schedule) | {"links": measure_link_use(schedule).to_json()}
    assert facts["links"]["by_round"] == [48, 64, 64, 64]
    assert facts_text(facts)["links"] == "93.8 % of their time used, most idle in step 1: 16 arcs"
    schedule = tf.plan("3x4", "alltoall@1", algorithm="matching")
    facts = schedule_facts(schedule) | {"links": measure_link_use(schedule).to_json()}
    assert facts["links"]["use"] == 0.3333
    assert ", 24 of 48 arcs never" in facts_text(facts)["links"]


def test_heat_map(tmp_path, capsys):
    """The heat map shows idle arcs; a map with too many cells is refused."""
    path = tmp_path / "links.svg"
    assert main(["draw", "3x4", "alltoall@1", "--links", "-o", str(path), "--json"]) == 0
    links = json.loads(capsys.readouterr().out)["links"]
    assert links["unused"] == 24
    text = path.read_text()
    assert text.startswith("<svg")
    assert "24 of 48 arcs never" in text
    with pytest.raises(tf.InputError, match="Arcs times steps must be at most 1048576 for a heat"):
        heat_map(tf.plan("32x32", "allgather", algorithm="hamiltonian"))
