"""Packets that are no good are dropped with all of their run, and leave the fabric usable."""

import pytest
from helpers import few
from stream_bench import StreamBench, messages_of, streams

from torusfabric.simulation.engines import Job


def shorter(sent, node):
    dest, words = sent[node][0]
    sent[node][0] = dest, words[:-1]


def longer(sent, node):
    dest, words = sent[node][0]
    sent[node][0] = dest, [*words, 1, 2, 3]


def renamed(sent, node, dest):
    sent[node][0] = dest, sent[node][0][1]


def twice(sent, node):
    sent[node][0] = sent[node][1][0], sent[node][0][1]


#: What becomes of a message of four nodes, and the error.
FAULTS = {
    "shorter": ("allgather", {"flits": 3}, lambda sent: shorter(sent, 2), 6),
    "longer": ("allgather", {"flits": 3}, lambda sent: longer(sent, 1), 6),
    "unequal": ("allgather", {"max_flits": 6}, lambda sent: shorter(sent, 3), 6),
    "too long": ("allgather", {"max_flits": 3}, lambda sent: longer(sent, 0), 6),
    "unequal to others": ("alltoall", {"max_flits": 6}, lambda sent: shorter(sent, 3), 6),
    "the same destination": ("alltoall", {"flits": 2}, lambda sent: twice(sent, 0), 7),
    "of a root": ("scatter", {"flits": 2}, lambda sent: longer(sent, 0), 6),
}


@pytest.mark.parametrize("name", few(3, [*FAULTS], tuples=True))
def test_a_message_is_dropped(name):
    collective, options, spoil, error = FAULTS[name]
    fabric = streams("2x2", collective, **options)
    length = None if "flits" in options else 3
    messages = messages_of(fabric, [Job(length=length)] * 7)
    # Alone, two at once, and between others.
    for number in (0, 3, 4):
        spoil(messages[number].sent)
        messages[number].fails(error)
    bench = StreamBench(fabric, 0.2)
    assert bench.run(messages) == []
    assert bench.runs == [fabric.program.cycles(length)] * 4


def test_a_destination_that_does_not_exist():
    fabric = streams("3", "alltoall", flits=2)
    messages = messages_of(fabric, 3)
    renamed(messages[1].sent, 0, 3)
    messages[1].fails(7)
    assert StreamBench(fabric, 0.2).run(messages) == []


def test_statuses_say_why():
    fabric = streams("2x2", "allgather,alltoall", max_flits=4)
    jobs = [Job(mode=mode, length=3) for mode in (0, 1, 1, 0, 0, 1)]
    messages = messages_of(fabric, jobs)
    shorter(messages[0].sent, 1)
    twice(messages[1].sent, 2)
    longer(messages[3].sent, 2)
    for number, error in ((0, 6), (1, 7), (3, 6)):
        messages[number].fails(error)
    commands = [(job.mode, 3 * (k < 4), 0, 0, 10 + k) for k, job in enumerate(jobs)]
    # A length that the packets do not have.
    commands[4] = (0, 2, 0, 0, 14)
    messages[4].fails(6)
    bench = StreamBench(fabric, 0.3)
    assert bench.run(messages, commands) == []
    cycles = [fabric.program.cycles(3, mode=1)] * 2
    assert bench.statuses == [
        [10, 6, 0], [11, 7, 0], [12, 0, cycles[0]], [13, 6, 0], [14, 6, 0], [15, 0, cycles[1]]
    ]  # fmt: skip


@pytest.mark.parametrize("between", ["a dropped message", "a reduce"])
def test_the_last_word_waits_for_a_slow_receiver(between):
    """A run that brings a node nothing gives no room to the next before that word is read."""
    dropped = between == "a dropped message"
    fabric = streams("3", "allgather,reduce", max_flits=2)
    jobs = [Job(mode=k % 2 * (not dropped), length=2 - k % 2) for k in range(12)]
    messages = messages_of(fabric, jobs)
    for message in messages[1::2] if dropped else []:
        longer(message.sent, 0)
        message.fails(6)
    assert StreamBench(fabric, (0.0, 0.8), seed=2).run(messages) == []
