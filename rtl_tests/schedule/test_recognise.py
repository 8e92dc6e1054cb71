"""Schedules from files: their regularity is found, and their hardware is that of the plan."""

from dataclasses import fields, replace

import numpy as np
import pytest
from helpers import NAMED_COLLECTIVES, few
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.algorithms import CATALOGUE, Options
from torusfabric.collective import Collective, parse_collective
from torusfabric.schedule import ALL, Grouped, Listed, Pattern, Rounds, Switching, Table, Transfers
from torusfabric.schedule.file import load, save
from torusfabric.schedule.recognise import recognise
from torusfabric.schedule.recognise.forms import group_blocks
from torusfabric.topology import Arrowhead, Torus, parse_topology

QUICK = ("2", "2x3", "4x4", "arrowhead:2")
TOPOLOGIES = ("2", "5", "6", "2x3", "3x3", "4x4", "3x3x3", "arrowhead:1", "arrowhead:2")


def in_rounds(schedule):
    """Return the schedule with its transfers listed."""
    return Rounds(**schedule.head, transfers=tuple(schedule.rounds()))


def selections():
    """Yield every algorithm and collective of the catalogue, on a few topologies."""
    for name in TOPOLOGIES:
        topology = parse_topology(name)
        for collective in map(parse_collective, NAMED_COLLECTIVES):
            for algorithm in CATALOGUE:
                if algorithm.why_not(topology, collective, Options()) is None:
                    case = f"{name} {collective.kind} {algorithm.name}"
                    marks = [pytest.mark.long] * (name not in QUICK)
                    yield pytest.param(topology, collective, algorithm, id=case, marks=marks)


def differences(a, b, path="program"):
    """List the paths at which two values differ, except for their schedules."""
    if isinstance(a, np.ndarray):
        return [] if np.array_equal(a, b) else [path]
    if hasattr(a, "__dataclass_fields__"):
        names = [f.name for f in fields(a) if f.compare and f.name != "schedule"]
        return [
            found
            for name in names
            for found in differences(getattr(a, name), getattr(b, name), f"{path}.{name}")
        ]
    if isinstance(a, tuple) and len(a) == len(b):
        return [
            found
            for k, (one, other) in enumerate(zip(a, b, strict=True))
            for found in differences(one, other, f"{path}[{k}]")
        ]
    return [] if a == b else [path]


def assert_same_hardware(planned, read):
    """Check that two schedules have the same program."""
    assert type(read) is type(planned)
    for flits in (planned.chunks, 3 * planned.chunks):
        programs = [tf.compile(schedule, flits=flits) for schedule in (planned, read)]
        assert differences(*programs) == []
        assert programs[0].digest == programs[1].digest


@pytest.mark.parametrize(("topology", "collective", "algorithm"), list(selections()))
def test_the_catalogue_comes_back(topology, collective, algorithm, tmp_path):
    """A plan of the catalogue, saved and read again, gives the same hardware."""
    planned = recognise(algorithm(topology, collective))
    save(planned, tmp_path / "plan.json")
    assert_same_hardware(planned, load(tmp_path / "plan.json"))


@pytest.mark.parametrize(
    ("name", "kind", "algorithm", "options"),
    few(
        3,
        [
            pytest.param("7x7x7", "allgather", "lee-code", {"large": True}, marks=pytest.mark.long),
            ("4x4", "allgather", "matching", {"latency": 2}),
            ("4x4", "allreduce", "matching", {"latency": 3, "chunks": 32}),
            ("4x4", "alltoall", "matching", {"chunks": 2}),
            ("4x6!0:-0", "broadcast", "max-flow", {}),
            ("arrowhead:2", "broadcast", "spanning-tree", {"packets": 3}),
        ],
    ),
)
def test_options_come_back(name, kind, algorithm, options, tmp_path):
    """A plan with options, saved and read again, gives the same hardware."""
    (algorithm,) = [entry for entry in CATALOGUE if entry.name == algorithm]
    topology = parse_topology(name)
    planned = recognise(algorithm(topology, parse_collective(kind), Options(**options)))
    save(planned, tmp_path / "plan.json.gz")
    assert_same_hardware(planned, load(tmp_path / "plan.json.gz"))


# Schedules made by hand.


def rounds(topology, kind, *transfers, **others):
    """Rounds of single hops."""
    return Rounds(
        topology=topology, collective=Collective(kind), algorithm="by hand",
        switching=Switching.STORE_AND_FORWARD, ports=topology.ports, transfers=transfers, **others,
    )  # fmt: skip


def test_everything_on_a_ring():
    """Transfers of all held blocks are a pattern if that is one block."""
    nodes = np.arange(3)
    both = Transfers(np.tile(nodes, 2), np.repeat([[0], [1]], 3, axis=0).astype(np.int8), ALL)
    found = recognise(rounds(Torus([3]), "allgather", both))
    assert isinstance(found, Pattern)
    assert (found.steps, found.inject.tolist()) == (1, [[0, 0]] * 3)
    assert (found.feed == -1).all()


def test_a_table_that_is_oblivious_becomes_a_pattern():
    """An oblivious table becomes a pattern, because a pattern has the smaller hardware."""
    table = Table(
        topology=Torus([5]), collective=Collective("allgather"), algorithm="x", ports=2,
        switching=Switching.STORE_AND_FORWARD, offset=np.array([[1, 4], [2, 3]]),
        chunk=np.zeros((2, 2), int),
    )  # fmt: skip
    found = recognise(table)
    assert isinstance(found, Pattern)
    assert (found.feed.tolist(), found.steps) == ([[1, 0]] * 5, 2)
    assert_same_hardware(found, recognise(in_rounds(table)))
    assert recognise(found) is found


def test_sums_that_others_complete():
    """An all-reduce whose shares are summed away from their owners stays in rounds, and runs."""
    (form,) = tf.plan_forms("complete:3", "allreduce", max_flits=64)
    assert (form.form, form.steps, form.chunks) == ("rounds", 2, 3)
    fabric = tf.Fabric(tf.compile(form, max_flits=64), width=8)
    assert tf.simulate(fabric, jobs=[tf.Job(length=length) for length in (1, 5)]).passed


def test_one_transfer_less_is_irregular():
    """A table that lacks one transfer stays in rounds."""
    (algorithm,) = [entry for entry in CATALOGUE if entry.name == "matching"]
    schedule = in_rounds(algorithm(Torus([4, 4]), Collective("allgather")))
    last = schedule.transfers[-1]
    fewer = Transfers(last.source[1:], last.hops[1:], Listed.single(last.payload.ids[1:]))
    broken = replace(schedule, transfers=(*schedule.transfers[:-1], fewer))
    assert recognise(broken) is broken


@pytest.mark.parametrize("twice", [1, 3])
def test_a_word_that_is_sent_twice_is_irregular(twice):
    """A word that is sent twice stays in rounds, for the checker to refuse."""
    table = tf.plan("3", "allreduce", algorithm="ring-exchange", chunks=1)
    (sent,) = table.rounds()
    again = sent.of(np.append(np.arange(len(sent)), np.arange(6)[: 2 * twice : 2]))
    schedule = Rounds(**table.head, transfers=(again,))
    assert recognise(schedule) is schedule
    with pytest.raises(tf.ScheduleError, match="carries two messages at once"):
        tf.check(schedule)


def test_circuits_stay_in_rounds():
    """A schedule over circuits stays in rounds, even if all its paths are one hop."""
    step = Transfers(np.arange(3), np.zeros((3, 1), np.int8), Listed.single(np.arange(3)))
    schedule = replace(rounds(Torus([3]), "allgather", step), switching=Switching.CIRCUIT)
    assert recognise(schedule) is schedule


def test_groups_are_numbered_by_their_first_blocks():
    """Groups of blocks are numbered by their first blocks, and lists become such groups."""

    def group(labels, wanted):
        return Grouped(np.array(labels), np.array(wanted))

    def schedule(payload):
        fill = Transfers(np.array([1, 3]), np.array([[1], [0]], np.int8))
        parts = Transfers(np.array([0, 0]), np.array([[0], [1]], np.int8), payload)
        return replace(rounds(Torus([4]), "allgather", fill, parts), switching=Switching.CIRCUIT)

    lists = Listed(np.array([0, 2, 3]), np.array([0, 1, 3]))
    for payload in (group([5, 5, 5, 2], [5, 2]), group([0, 0, 1, 7], [0, 7]), lists):
        _, parts = recognise(schedule(payload)).rounds()
        found = parts.payload
        assert isinstance(found, Grouped)
        assert found.group.tolist() == [0, 0, 1, 2]
        assert found.wanted.tolist() == [0, 2]


def test_a_message_without_a_block_is_of_no_group():
    """A round with an empty message keeps its list, for the checker to refuse."""
    parts = Transfers(
        np.array([0, 0]), np.array([[0], [1]], np.int8), Listed(np.array([0, 2, 2]), np.arange(2))
    )
    schedule = rounds(Torus([4]), "allgather", parts, chunks=3)
    (found,) = recognise(replace(schedule, switching=Switching.CIRCUIT)).rounds()
    assert isinstance(found.payload, Listed)


@pytest.mark.parametrize(("chunks", "searched"), [(4, True), (2**25, False)])
def test_what_no_hardware_holds_is_not_searched_for_groups(chunks, searched):
    """Beyond 2^26 blocks at all nodes together a list stays a list."""
    half = Transfers(
        np.array([0]), np.zeros((1, 1), np.int8), Listed(np.array([0, 2]), np.arange(2))
    )
    schedule = rounds(Torus([2]), "allgather", half, chunks=chunks)
    assert (group_blocks(schedule) is not schedule) == searched


# Random schedules.

SMALL = st.sampled_from([Torus([2]), Torus([5]), Torus([2, 3]), Torus([3, 3]), Arrowhead(1)])


@st.composite
def patterns(draw):
    """A random pattern, valid or not."""
    topology, chunks = draw(SMALL), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = topology.nodes, topology.ports
    return Pattern(
        topology=topology, collective=Collective("allgather"), algorithm="chance",
        switching=Switching.STORE_AND_FORWARD, ports=topology.ports, chunks=chunks,
        steps=draw(st.integers(1, 6)), feed=random.integers(-1, topology.ports, shape),
        inject=random.integers(-1, chunks, shape),
    )  # fmt: skip


@st.composite
def tables(draw):
    """A random table, valid or not."""
    topology, share = draw(SMALL), draw(st.integers(1, 2))
    kind = draw(st.sampled_from(["allgather", "alltoall", "reduce-scatter", "allreduce"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps, nodes = draw(st.integers(1, 5)), topology.nodes
    shape = steps, topology.ports
    offset = random.integers(-1, nodes, shape)
    goal = np.where(offset < 0, -1, random.integers(0, nodes, shape))
    return Table(
        topology=topology, collective=Collective(kind), algorithm="chance",
        switching=Switching.STORE_AND_FORWARD, ports=topology.ports,
        chunks=share * (nodes if kind == "allreduce" else 1), offset=offset,
        chunk=np.where(offset < 0, -1, random.integers(0, share, shape)),
        destination=goal if kind == "alltoall" else None,
        reducing={"reduce-scatter": steps, "allreduce": steps // 2}.get(kind, 0),
    )  # fmt: skip


def transfers_of(schedule):
    """The transfers of each round, as sets."""
    return [
        {
            (node, port, tuple(sorted(blocks.tolist())))
            for node, port, blocks in zip(
                t.source.tolist(),
                t.hops[:, 0].tolist(),
                np.split(t.payload.ids, t.payload.indptr[1:-1]),
                strict=True,
            )
        }
        for t in (t for t in schedule.rounds() if len(t))
    ]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.one_of(patterns(), tables()))
def test_chance(schedule):
    """A listed schedule is recognised with the same transfers, whatever its form was."""
    listed = in_rounds(schedule)
    assume(sum(map(len, listed.transfers)) >= schedule.topology.nodes)
    found, normal = recognise(listed), recognise(schedule)
    assert transfers_of(found) == transfers_of(schedule) == transfers_of(normal)
    if schedule.collective.kind == "allreduce" and isinstance(found, Rounds):
        return  # complete sums leave from nodes other than their owners
    assert isinstance(found, Pattern | Table)
    assert found.form == "pattern" or schedule.form == "table"
    # The number of steps does not always tell in which step the sums of an all-reduce are complete.
    if schedule.form == "table" and schedule.collective.kind != "allreduce":
        assert found.digest == normal.digest


def test_blocks_that_cannot_be_followed(monkeypatch):
    """A schedule stays as it is if the blocks of its nodes would take too much memory."""

    def refuse(*_):
        raise tf.InputError("Blocks must be fewer, not so many")

    sent = Transfers(np.arange(3), np.zeros((3, 1), np.int8), ALL)
    whole = rounds(Torus([3]), "allgather", sent)
    monkeypatch.setattr("torusfabric.schedule.recognise.steps.HeldBlocks", refuse)
    assert recognise(whole) is whole
