"""Streams run as fast as ports and links allow, also beside runs that are no good."""

import pytest
from helpers import few
from stream_bench import StreamBench, check, messages_of, streams

#: Words that the node with the most loads and unloads for each flit of a message.
PORTS = {"allgather": (1, 4), "broadcast": (1, 1), "scatter": (4, 1), "gather": (1, 4)}

#: Runs of some nine cycles, in which no node sends or receives as many words.
SHORT = [("2", "allgather", 1), ("2x2", "scatter", 1), ("2x3", "broadcast", 2)]


@pytest.mark.parametrize("collective", few(2, [*PORTS], tuples=True))
def test_runs_follow_one_another_without_a_pause(collective):
    fabric = streams("2x2", collective, flits=24)
    bench = check(fabric, 6)
    period = (bench.ends[-1] - bench.ends[2]) / 3
    most = max(fabric.predicted_cycles, *(24 * words for words in PORTS[collective]))
    assert period <= most / 0.95


@pytest.mark.parametrize(("topology", "collective", "flits"), few(2, [*SHORT]))
def test_short_runs_follow_one_another_without_a_pause(topology, collective, flits):
    """Where runs take longest, each begins in the last cycle of the one before."""
    fabric = streams(topology, collective, flits=flits)
    bench = check(fabric, 6)
    assert bench.ends[-1] - bench.ends[2] == 3 * fabric.predicted_cycles


@pytest.mark.parametrize("stall", [(0.0, 0.8), (0.8, 0.0)])
@pytest.mark.parametrize("flits", [2, 4])
def test_a_run_that_is_no_good_disturbs_no_other(flits, stall):
    """With receivers that are slow, and senders that are, in two sections and in four."""
    fabric = streams("2", "allgather", flits=flits)
    bench, messages = StreamBench(fabric, stall), messages_of(fabric, 8)
    messages[2].sent[1][0] = 0, [1]
    messages[2].fails(6)
    assert bench.run(messages) == []
    assert {*bench.runs} == {fabric.predicted_cycles}
