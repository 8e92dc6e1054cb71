"""Boards that are reset at any moment: the others find them again, and no wrong run is reported as
right.

Thousands of resets: ``python -m pytest rtl_tests/simulation/test_board_resets.py -m long``.
"""

from functools import partial

import numpy as np
import pytest
from board_systems import board_system
from helpers import few

import torusfabric as tf
from torusfabric.adapters.boards.drive.compiled import CompiledBoards
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.errors import InputError
from torusfabric.rtl.run_choices import RunError
from torusfabric.simulation.engines.edges import run_access

#: Edges after which a board is not started.
NEVER = 10**6

#: The number of a board that does not exist, for a cable that carries nothing.
NOWHERE = 99


made = partial(board_system, max_flits=8)

#: Two boards, a ring of four, a square of four, and a chain of links with other latencies.
SYSTEMS = {
    "pair": lambda: made((2,), "2", 9, ppm=1000),
    "ring": lambda: made((4,), "4", 14),
    "square": lambda: made((2, 2), "2x2", 12, "allgather", "allreduce"),
    "blocks": lambda: made((4, 2), "2x1", "0:20", width=16, retries=2),
    "long": lambda: made((6,), "6", 20, retries=0),
}


class Reset(CompiledBoards):
    """Boards that are started and reset individually."""

    def __init__(self, system, seed):
        super().__init__(system, seed=seed, link_errors=0.0)
        plan, self.count = system.link_plan, system.boards.n_boards
        longest = plan.total_cycles(plan.longest, system.retries + 1)
        #: Edges after which every run is over, and no message about it is on its way.
        self.settled = longest + 2 * plan.countdown_cycles + plan.stale_message_cycles + 200
        self.rng = np.random.default_rng(seed)
        self.ours = np.zeros(self.count, bool)

    def advance(self, edges, starts=()):
        """Advance by some edges; start boards after the given numbers of edges."""
        waits = np.full(self.count, NEVER, np.uint64)
        for board, wait in dict(starts).items():
            waits[board] = wait
        self.run_boards(waits, edges, np.zeros(self.count, np.uint32))

    def idle(self):
        """The boards that are not busy."""
        return [board for board, busy in enumerate(self.output_values("busy")) if not busy]

    def choose(self, job):
        for session in self.sessions:
            session.set_choices(job)

    def start(self, boards, *, within=60):
        """Start boards at random times within `within` edges."""
        starts = {board: int(self.rng.integers(within)) for board in boards}
        self.ours[list(boards)] = True
        self.advance(within + 1, starts)

    def reset(self, boards, edges):
        """Reset boards and their elastic buffers for some edges. Two edges suffice for each board
        to have one.
        """
        for board in boards:
            self.sessions[board].inputs["rst"][0] = 1
        self.advance(edges)
        for board in boards:
            self.sessions[board].inputs["rst"][0] = 0
            self.ours[board] = False
        for cable in self.cables:
            if cable.receiver in boards:
                cable.written = 0

    def some(self):
        """A random set of boards, at least one."""
        chosen = self.rng.random(self.count) < 0.4
        chosen[self.rng.integers(self.count)] = True
        return np.flatnonzero(chosen).tolist()

    def unplug(self, edges):
        """Unplug a random cable for some edges."""
        cable = self.cables[int(self.rng.integers(len(self.cables)))]
        sender, cable.sender = cable.sender, NOWHERE
        self.advance(edges)
        cable.sender = sender

    def job(self):
        """Choose a random job and random messages, and write the messages into memories."""
        fabric, rng = self._fabric, self.rng
        mode = int(rng.integers(len(fabric.program.modes)))
        job = tf.Job(mode=mode if len(fabric.program.modes) > 1 else None,
                     length=int(rng.integers(1, 9)))  # fmt: skip
        parts = fabric.layouts[mode].send_words // fabric.flits
        shape = fabric.nodes, parts * fabric.program.length_of(job.length)
        words = RunWords(fabric, rng.integers(1 << fabric.width, size=shape), job)
        self.choose(job)
        run_access(self.write_messages(words), self.simulate_edges)
        # A reset would lose words that are still on their way into memories.
        self.advance(fabric.write_latency + 2)
        return job, words

    def wrong(self, job, words, boards):
        """The number of wrong words on the given boards."""
        run_access(self.read_received(words), self.simulate_edges)
        expected, receives = self._fabric.delivered(words.messages, **job.inputs)
        nodes = self._boards.boards.nodes_by_board[boards].ravel()
        differs = (np.asarray(words.received, expected.dtype) != expected) & receives
        return int(differs[nodes].sum())

    def disturb(self):
        """Start all boards, some or none, and reset random boards at random moments."""
        rng = self.rng
        self.ours[:] = False
        moment = rng.integers(4)
        if moment:
            self.start(range(self.count) if moment > 1 else self.some())
            self.advance(int(rng.integers(1, self.settled // 2)))
        for _ in range(int(rng.integers(1, 4))):
            chosen = self.some()
            self.reset(chosen, int(rng.choice([2, 3, 5, 40, 400])))
            what = rng.integers(6)
            if what == 0:
                self.start(chosen, within=3)
            elif what == 1:
                self.unplug(int(rng.integers(1, 300)))
            self.advance(int(rng.integers(1, 200)))


def check_resets(system, seed, rounds):
    """Reset boards repeatedly; return the set of errors that boards have shown."""
    seen = set()
    with Reset(system, seed) as boards:
        for number in range(rounds):
            job, words = boards.job()
            boards.disturb()
            # Check at once, soon, or after every run is over.
            pause = [1, 30, boards.settled][number % 3]
            boards.advance(pause)
            first = boards.idle()
            if pause < boards.settled:
                boards.start(first)
                boards.advance(boards.settled)
                seen.update(boards.output_values("error"))
            done, errors = boards.output_values("done"), boards.output_values("error")
            good = [k for k in boards.idle() if boards.ours[k] and done[k] and not errors[k]]
            assert not boards.wrong(job, words, good), (seed, number, "said to be right")
            # Start the boards that are not busy; the busy ones wait for them.
            boards.start(boards.idle())
            boards.advance(boards.settled)
            state = (
                seed,
                number,
                boards.output_values("busy"),
                boards.output_values("error"),
                boards.output_values("failed"),
            )
            assert not any(boards.output_values("busy")), state
            assert set(boards.output_values("error")) <= {RunError.NONE}, state
            assert not boards.wrong(job, words, range(boards.count)), (seed, number, "last run")
    return seen


@pytest.mark.parametrize("name", ["pair", "ring"])
def test_boards_that_are_reset_are_in_service_at_the_next_start(name):
    check_resets(SYSTEMS[name](), seed=1, rounds=20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("name", SYSTEMS)
def test_boards_survive_thousands_of_resets(name, seed):
    seen = check_resets(SYSTEMS[name](), seed=seed, rounds=150)
    assert seen <= {RunError.NONE, RunError.BUSY, RunError.LINK, RunError.TIMEOUT}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("before", few(2, [63, 1, 64, 65, 127, 129]))
def test_a_reset_at_rest_is_forgotten_after_any_number_of_runs(before, which):
    with Reset(SYSTEMS["pair"](), seed=1) as boards:
        boards.choose(tf.Job(length=1))
        for _ in range(before):
            boards.start([0, 1], within=2)
            boards.advance(200)
        assert boards.output_values("error") == [RunError.NONE] * 2
        boards.reset([which], 40)
        for _ in range(3):
            boards.start([0, 1])
            boards.advance(200)
            assert (boards.output_values("busy"), boards.output_values("error")) == (
                [0, 0],
                [RunError.NONE] * 2,
            )


def named(system, failed):
    """The boards behind the link ports that are marked as failed."""
    return {end.board for ends, bits in zip(system.boards.far_ends, failed, strict=True)
            for link, end in enumerate(ends) if bits >> link & 1}  # fmt: skip


@pytest.mark.parametrize(("sides", "retries", "which", "apart"), few(3, [
    (2, 1, 0, 9), (4, 0, 1, 13), (2, 0, 1, 2), (4, 0, 2, 5), (4, 1, 0, 5), (4, 0, 3, 5),
    (6, 0, 1, 7), (6, 0, 2, 7)]))  # fmt: skip
def test_errors_say_which_board_was_reset(sides, retries, which, apart):
    """Errors name the board that was reset, whether boards wait, run, or check the run."""
    latency = {2: 9, 4: 14, 6: 20}[sides]
    system, seen = made((sides,), str(sides), latency, retries=retries), set()
    run = system.link_plan.total_cycles(system.fabric.program.cycles(2), retries + 1)
    with Reset(system, seed=1) as boards:
        boards.choose(tf.Job(length=2))
        for wait in range(1, run + system.link_plan.countdown_cycles + 20, apart):
            boards.advance(wait, dict.fromkeys(range(sides), 0))
            boards.reset([which], 5)
            boards.advance(boards.settled)
            errors, found = (
                {*boards.output_values("error")} - {0},
                named(system, boards.output_values("failed")),
            )
            assert which in found or not errors, wait
            if errors == {RunError.LINK}:
                assert found == {which}, wait
            seen |= errors
            boards.start(boards.idle())
            boards.advance(boards.settled)
            assert not any(boards.output_values("busy") + boards.output_values("error"))
    # Board 0 of a pair starts its run or waits for the next start: it never times out.
    pair = (sides, which) == (2, 1)
    assert seen == ({RunError.LINK} if pair else {RunError.LINK, RunError.TIMEOUT})


def test_a_start_waits_for_as_long_as_is_said():
    """A start waits for its timeout and then names the link ports to boards without a start. The
    next start works.
    """
    system = made((4,), "4", 14, start_timeout=500)
    with Reset(system, seed=1) as boards:
        boards.choose(tf.Job(length=1))
        boards.advance(200, {0: 0, 3: 0})
        assert boards.output_values("busy") == [1, 0, 0, 1]
        boards.advance(301)
        assert boards.output_values("busy") == [1, 0, 0, 1]
        boards.advance(3)
        assert (boards.output_values("busy"), boards.output_values("done")) == (
            [0] * 4,
            [1, 0, 0, 1],
        )
        assert boards.output_values("error") == [RunError.TIMEOUT, 0, 0, RunError.TIMEOUT]
        failed = boards.output_values("failed")
        own = [named(system, [bits * (k == board) for k, bits in enumerate(failed)])
               for board in range(4)]  # fmt: skip
        assert own == [{1}, set(), set(), {0}]
        boards.start(range(4))
        boards.advance(boards.settled)
        assert boards.output_values("error") == [RunError.NONE] * 4


def test_a_start_ends_on_all_boards_when_one_of_them_is_reset():
    """A reset of one board ends a start on all boards, and its neighbours name that board."""
    system = made((4,), "4", 14)
    with Reset(system, seed=1) as boards:
        boards.choose(tf.Job(length=1))
        boards.start([0, 2, 3])
        boards.advance(400)
        assert boards.output_values("busy") == [1, 0, 1, 1]
        boards.reset([3], 40)
        boards.advance(200)
        assert boards.output_values("busy") == [0] * 4
        assert boards.output_values("error") == [RunError.TIMEOUT, 0, RunError.TIMEOUT, 0]
        for board in (0, 2):
            links = [k for k in range(2) if boards.output_values("failed")[board] >> k & 1]
            assert [system.boards.far_ends[board][link].board for link in links] == [3]
        boards.start(range(4))
        boards.advance(boards.settled)
        assert boards.output_values("error") == [RunError.NONE] * 4


def test_a_start_without_a_limit_waits():
    with Reset(made((2,), "2", 9, start_timeout=0), seed=1) as boards:
        boards.choose(tf.Job(length=1))
        boards.start([0])
        boards.advance(20_000)
        assert boards.output_values("busy") == [1, 0]
        # A reset withdraws the start.
        boards.reset([0], 2)
        boards.start([1])
        boards.advance(200)
        assert boards.output_values("busy") == [0, 1]
        boards.start([0])
        boards.advance(200)
        assert (boards.output_values("busy"), boards.output_values("error")) == (
            [0, 0],
            [RunError.NONE] * 2,
        )


def test_boards_are_not_taken_in_by_choices_of_before_a_reset():
    """A board whose choices were replaced by a reset is not taken for one with equal choices."""
    system, seen = SYSTEMS["pair"](), set()
    with Reset(system, seed=1) as boards:
        for wait in range(1, 60):
            for session, length in zip(boards.sessions, (4, 4), strict=True):
                session.set_choices(tf.Job(length=length))
            boards.advance(wait, {0: 0, 1: 0})
            boards.reset([1], 2)
            boards.sessions[1].set_choices(tf.Job(length=3))
            boards.advance(3, {1: 0})
            boards.advance(boards.settled)
            errors = tuple(boards.output_values("error"))
            assert 0 not in errors, (wait, errors)
            seen.add(errors)
            boards.start(boards.idle())
            boards.advance(boards.settled)
            assert not any(boards.output_values("busy"))
    assert (RunError.UNEQUAL_CHOICES,) * 2 in seen


def test_limits_of_starts_are_checked():
    with pytest.raises(InputError, match="Start timeout must be from 0 to 4294967295 cycles"):
        made((2,), "2", 9, start_timeout=1 << 32)
