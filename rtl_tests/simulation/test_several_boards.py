"""Fabrics on several boards with separate clocks, link errors and cut cables."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from board_systems import board_system
from helpers import few, simulated

import torusfabric as tf
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.drive.compiled import CompiledBoards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.adapters.boards.hardware.link_plan import SPARE_WORDS
from torusfabric.adapters.boards.hardware.links import Receiver, WordType
from torusfabric.errors import InputError
from torusfabric.rtl.crc import INITIAL_CRC
from torusfabric.rtl.run_choices import RunError
from torusfabric.topology.boards import Boards

#: The number of a board that does not exist, for a cable that carries nothing.
NOWHERE = 99


@pytest.fixture(scope="module")
def pair():
    """Two boards of one node, for messages of any length up to 16 flits, compiled once."""
    system = board_system((2,), "2", 9, max_flits=16, ppm=1000)
    simulate_boards(system, jobs=1)
    return system


def test_all_words_are_right_and_all_cycles_exact(pair):
    report = simulate_boards(pair, jobs=12)
    assert report.passed
    assert report.words_wrong == 0 < report.words_checked
    for run in report.jobs:
        alone = pair.fabric.program.cycles(run.length)
        assert run.cycles == (alone + pair.link_plan.attempt_overhead,) * 2
        assert run.attempts == 1


def test_all_that_a_report_says_counts(pair):
    """Every fault in a report fails it. With link errors, repeated and failed runs are allowed."""
    report = simulate_boards(pair, jobs=2)
    first, second = report.jobs
    early, late = (
        replace(run, cycles=tuple(cycles + change for cycles in run.cycles))
        for run, change in ((first, -1), (second, 1))
    )
    one = replace(first, cycles=(first.cycles[0], first.cycles[1] + 1))
    for changes in ({"jobs": (early, late)}, {"jobs": (one, second)}, {"words_wrong": 1}):
        assert not replace(report, **changes).passed
        assert not replace(report, link_errors=0.1, **changes).passed
    for changes in ({"retries": 1}, {"failed": 1}):
        assert not replace(report, **changes).passed
        assert replace(report, link_errors=0.1, **changes).passed
    assert replace(report, link_errors=None, retries=1).passed
    assert not replace(report, link_errors=None, failed=1).passed


def test_boards_that_differ_have_no_cycles_in_common(pair, monkeypatch):
    collect = CompiledBoards.start_and_wait

    def late(boards, job):
        run = yield from collect(boards, job)
        boards.cycles[1] += 1
        return run

    monkeypatch.setattr(CompiledBoards, "start_and_wait", late)
    report = simulate_boards(pair, jobs=1)
    assert (report.cycles, report.words_wrong, report.passed) == (-1, 0, False)


def test_what_is_lost_is_sent_again_or_said(pair):
    report = simulate_boards(pair, jobs=60, link_errors=2e-3)
    assert report.passed
    assert report.link_words_changed > report.retries > report.failed > 0
    assert {run.attempts for run in report.jobs} == {1, 2}
    for run in report.jobs:
        assert run.has_exact_cycles
        assert run.errors in [(0, 0), (RunError.LINK, RunError.LINK)]
        assert run.failed == (run.words_checked == 0)


def step(boards, lengths, *, waits=(3, 40, 11, 25), edges=40_000):
    """Start all boards, each with a length; return True if all end within some edges."""
    cycles, starts = np.zeros(len(boards.sessions), np.uint32), np.array(waits, np.uint64)
    for session, length in zip(boards.sessions, lengths, strict=True):
        session.set_choices(tf.Job(length=length))
    failed, _ = boards.run_boards(starts, edges, cycles)
    return not failed


def test_boards_that_are_told_different_things_do_not_run(pair):
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        assert step(boards, (3, 4))
        assert boards.output_values("error") == [RunError.UNEQUAL_CHOICES] * 2
        assert step(boards, (4, 4))
        assert boards.output_values("error") == [0, 0]
        # All boards refuse a length that no fabric accepts.
        assert step(boards, (0, 0))
        assert boards.output_values("error") == [RunError.LENGTH] * 2


def test_a_board_that_waits_takes_no_other_start(pair):
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        assert not step(boards, (3, 4), waits=(3, 10**6), edges=500)
        assert not step(boards, (4, 4), waits=(3, 10**6), edges=500)
        assert boards.output_values("error") == [RunError.BUSY, 0]
        # The other board compares with the choices of the first start.
        assert step(boards, (4, 4), waits=(10**6, 3)) is False
        assert boards.output_values("error") == [RunError.UNEQUAL_CHOICES] * 2


def test_boards_far_away_hear_who_was_told_something_else():
    """All boards of a ring report unequal choices, also those beyond the neighbours."""
    system = board_system((4,), "4", 14, max_flits=4)
    with CompiledBoards(system, seed=1, link_errors=0.0) as boards:
        assert step(boards, (3, 4, 4, 4))
        assert boards.output_values("error") == [RunError.UNEQUAL_CHOICES] * 4
        assert step(boards, (4, 4, 4, 4))
        assert boards.output_values("error") == [0] * 4


def test_who_waited_for_a_run_that_was_refused_does_not_wait_for_the_next(pair):
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        for wait in range(0, 50, 7):
            assert step(boards, (3, 4), waits=(0, 0))
            assert boards.output_values("error") == [RunError.UNEQUAL_CHOICES] * 2
            assert step(boards, (4, 4), waits=(wait, 250))
            assert boards.output_values("error") == [0, 0]


@pytest.mark.parametrize("cut", few(2, [*range(4)], tuples=True))
def test_a_cable_that_falls_silent_ends_the_run(pair, cut):
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        cable = boards.cables[cut]
        sender, cable.sender = cable.sender, NOWHERE
        # While boards wait, ..
        assert step(boards, (4, 4))
        assert boards.output_values("error") == [RunError.LINK] * 2
        assert boards.output_values("failed")[cable.receiver] == 1 << cut % 2
        cable.sender = sender
        assert step(boards, (4, 4))
        assert boards.output_values("error") == [0, 0]


def test_a_cable_that_falls_silent_while_a_board_waits_ends_its_run(pair):
    """A silent cable ends the run of a waiting board, even if messages arrived since its start."""
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        assert not step(boards, (4, 4), waits=(3, 10**6), edges=2_000)
        assert boards.output_values("busy") == [1, 0]
        cable = next(cable for cable in boards.cables if cable.receiver == 0)
        cable.sender = NOWHERE
        assert not step(boards, (4, 4), waits=(10**6,) * 2)
        assert boards.output_values("busy") == [0, 0]
        assert boards.output_values("error") == [RunError.LINK, 0]


@pytest.mark.parametrize("cut", few(1, [3, 0, 1, 2]))
def test_no_board_reports_success_where_another_fails(pair, cut):
    """All boards agree on success, whenever a cable falls silent."""
    run, seen = pair.fabric.program.cycles(4), set()
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        cable = boards.cables[cut]
        sender = cable.sender
        for edges in range(60, 260, 20):
            cable.sender = sender
            assert step(boards, (4, 4))
            over = step(boards, (4, 4), edges=edges)
            cable.sender = NOWHERE
            if not over:
                assert not step(boards, (4, 4), waits=(10**6,) * 2)
            assert boards.output_values("busy") == [0, 0]
            # The cable that carries the verdict may fall silent at that moment.
            late = [[0, RunError.LINK]] if cut == 3 else []
            assert boards.output_values("error") in ([0, 0], [RunError.LINK] * 2, *late)
            for cycles, error in zip(
                boards.output_values("cycles"), boards.output_values("error"), strict=True
            ):
                # A board whose run has not begun by then has a count of 0.
                allowed = {0: (1,), RunError.LINK: (1, 2)}[error]
                assert cycles in {pair.link_plan.total_cycles(run, k) for k in allowed} | (
                    {0} if error else set()
                )
            seen.update(boards.output_values("error"))
    assert seen == {0, RunError.LINK}


def test_cables_that_are_swapped_are_named(pair):
    """Swapped cables give a link error that names them, until they are swapped back."""
    with CompiledBoards(pair, seed=1, link_errors=0.0) as boards:
        first, second = boards.cables[0], boards.cables[1]
        for error, failed in ((RunError.LINK, 0b11), (0, 0)):
            for name in ("word", "frame"):
                here, there = getattr(first, name), getattr(second, name)
                setattr(first, name, there)
                setattr(second, name, here)
            # Messages pass all cables in their new places.
            assert not step(boards, (4, 4), waits=(10**6,) * 2, edges=500)
            assert step(boards, (4, 4))
            assert boards.output_values("error") == [error] * 2
            assert boards.output_values("failed")[first.receiver] == failed


def packet(frame, words):
    """The words of a packet with their types, and its CRC."""
    total = (zlib.crc32(bytes(words)) ^ INITIAL_CRC).to_bytes(4, "little")
    return [*((frame, word) for word in words), *((WordType.CHECK, word) for word in total)]


def heard_of(plan, *packets):
    """Count how often a receiver accepts messages of its peer, and messages of another board."""
    receiver, words = Receiver(plan, plan.latencies[0]), [each for one in packets for each in one]
    heard, strange = [], []

    async def bench(ctx):
        for came in range(len(words) + 20):
            came = min(came, len(words))
            ctx.set(receiver.count, (came ^ came >> 1) % (1 << len(receiver.count)))
            at, size = ctx.get(receiver.at), 1 << len(receiver.at)
            frame, word = [(WordType.NONE, 0), *words[at:came:size]][-1]
            ctx.set(receiver.head, frame << plan.width | word)
            await ctx.tick()
            heard.append(ctx.get(receiver.heard))
            strange.append(ctx.get(receiver.strange))

    simulated(receiver, bench)
    return sum(heard), sum(strange)


def test_only_whole_messages_are_heard(pair):
    """Only whole messages of the right length are heard, and no words of a run."""
    plan = pair.link_plan
    words = [*range(16, 16 + plan.message_words)]
    of_peer, of_another = [0, *words[1:]], [255, *words[1:]]
    assert heard_of(plan, packet(WordType.MESSAGE, of_peer)) == (1, 0)
    assert heard_of(plan, packet(WordType.MESSAGE, of_another)) == (0, 1)
    assert heard_of(plan, packet(WordType.MESSAGE, [*of_peer, 0])) == (0, 0)
    assert heard_of(plan, packet(WordType.MESSAGE, of_peer[1:])) == (0, 0)
    assert heard_of(plan, packet(WordType.RUN, of_peer)) == (0, 0)
    assert heard_of(plan, packet(WordType.RUN, of_peer), packet(WordType.MESSAGE, of_peer)) == (
        1,
        0,
    )


def test_words_for_which_there_is_no_room_are_lost(pair):
    plan = pair.link_plan
    receiver = Receiver(plan, plan.latencies[0])
    depth = 1 << len(receiver.at)

    async def bench(ctx):
        ctx.set(receiver.frozen, 1)
        ctx.set(receiver.head, WordType.RUN << plan.width)
        for came in range(1, depth - SPARE_WORDS + 1):
            ctx.set(receiver.count, came ^ came >> 1)
            await ctx.tick()
        await ctx.tick().repeat(5)
        assert ctx.get(receiver.lost) == 0
        ctx.set(receiver.count, came + 1 ^ came + 1 >> 1)
        await ctx.tick().repeat(5)
        assert ctx.get(receiver.lost) == 1

    simulated(receiver, bench)


def test_latency_must_cover_the_crossing():
    assert board_system((2,), "2", 8).link_plan.buffer_depth(8) == 16
    with pytest.raises(InputError) as found:
        board_system((2,), "2", 8, flits=400, ppm=1000)
    assert str(found.value) == (
        "Link latency between 2 boards must be at least 10 cycles (5.75 cycles for the crossing, "
        "1.75 for boards that do not start at once, 2.02 for 2000 ppm in 1009 cycles), not 8; "
        "give it by --link-latency, as in 2=10"
    )


@pytest.mark.parametrize("jobs", [[1], 4.5, tf.Job(), "few", -1])
def test_jobs_must_be_such(pair, jobs):
    with pytest.raises(InputError, match=r"^Jobs must be "):
        simulate_boards(pair, jobs=jobs)


def test_top_must_be_host():
    torus = tf.Torus(2, link_latency=9)
    fabric = tf.Fabric(tf.compile(tf.plan(torus, "allgather")), width=8, top="stream")
    with pytest.raises(InputError, match="Top must be host for several boards, not stream"):
        BoardSystem(fabric, Boards.parse("2", torus))


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 8, 16, 33, 100])
def test_boards_in_two_dimensions(width):
    names = "allgather", "allreduce"
    system = board_system((4, 4), "2x2", 12, *names, width=width, max_flits=24, ppm=200)
    assert simulate_boards(system, jobs=10).passed
    assert simulate_boards(system, jobs=30, link_errors=1e-4).passed


@pytest.mark.long
@pytest.mark.parametrize("name", ["broadcast", "scatter", "gather", "alltoall", "reduce"])
def test_any_root(name):
    options = {} if name == "alltoall" else {"root": "any"}
    system = board_system((4, 2), "2x1", "0:9", name, max_flits=8, **options)
    assert simulate_boards(system, jobs=20).passed
