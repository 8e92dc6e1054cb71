"""Streams run as fast as ports and links allow, and faults in them are found."""

import pytest
from amaranth.hdl import Const
from helpers import few
from stream_bench import StreamBench, check, messages_of, streams

from torusfabric.rtl.streams import nodes
from torusfabric.rtl.streams.endpoint import StreamEndpoint
from torusfabric.rtl.streams.loader import Loader
from torusfabric.rtl.streams.sections import Sections
from torusfabric.rtl.streams.unloader import Unloader

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


def given(monkeypatch, leaf, name, change):
    """A leaf is given something else: what follows from a function of what drives its inputs."""
    value = leaf.value
    monkeypatch.setattr(
        leaf,
        "value",
        lambda self, asked: change(lambda other: value(self, other)) if asked == name
        else value(self, asked),
    )  # fmt: skip


def without_round_trip(monkeypatch):
    """Nodes are taken at their word before they have heard of the last run."""
    control = nodes.StreamControl
    monkeypatch.setattr(nodes, "StreamControl", lambda _, shape, **how: control(0, shape, **how))


def wrong_of(fabric):
    """What is found to be wrong with eight runs, one of which is no good."""
    wrong = []
    # Receivers that are slow, and senders that are.
    for stall in ((0.0, 0.8), (0.8, 0.0)):
        bench, messages = StreamBench(fabric, stall), messages_of(fabric, 8)
        messages[2].sent[1][0] = 0, [1]
        messages[2].fails(6)
        try:
            wrong += bench.run(messages)
        except AssertionError as error:
            wrong.append(error)
        wrong += [cycles for cycles in bench.runs if cycles != fabric.predicted_cycles]
    return wrong


FAULTS = {
    "loads over what is read": lambda patch: given(
        patch, Loader, "run_ends", lambda value: value("run_begins")
    ),
    "unloads what is not there yet": lambda patch: given(
        patch, Unloader, "run_ends", lambda value: value("run_begins")
    ),
    "does not claim room": lambda patch: given(
        patch, Unloader, "run_begins", lambda value: Const(0)
    ),
    "one half for all runs": lambda patch: given(
        patch, StreamEndpoint, "run_begins", lambda value: Const(0)
    ),
    "reads on while the receiver waits": lambda patch: given(
        patch, StreamEndpoint, "read_advance", lambda value: Const(1)
    ),
    "keeps two messages, not four": lambda patch: given(
        patch, StreamEndpoint, "write_section", lambda value: value("write_section")[0]
    ),
    "starts on old news": without_round_trip,
}


#: The same, and others, where memories have four sections.
WITH_FOUR = {
    "unloads what is not there yet": FAULTS["unloads what is not there yet"],
    "does not claim room": FAULTS["does not claim room"],
    "one section for all runs": FAULTS["one half for all runs"],
    "keeps four messages, not eight": lambda patch: given(
        patch, StreamEndpoint, "write_section", lambda value: value("write_section")[:2]
    ),
    "loads into two sections": lambda patch: given(
        patch, StreamEndpoint, "write_section", lambda value: value("write_section") & 5
    ),
    "unloads from two sections": lambda patch: given(
        patch, StreamEndpoint, "read_section", lambda value: value("read_section") & 5
    ),
    "runs in two sections": lambda patch: patch.setattr(
        Sections, "following", lambda self, section, step=1: (section + step)[:1]
    ),
}


@pytest.mark.parametrize("fault", few(3, [*FAULTS], tuples=True))
def test_a_fault_is_found(fault, monkeypatch):
    FAULTS[fault](monkeypatch)
    assert wrong_of(streams("2", "allgather", flits=2))


@pytest.mark.parametrize("fault", few(3, [*WITH_FOUR], tuples=True))
def test_a_fault_is_found_with_four_sections(fault, monkeypatch):
    WITH_FOUR[fault](monkeypatch)
    assert wrong_of(streams("2", "allgather", flits=4))


@pytest.mark.parametrize("flits", [2, 4])
def test_without_a_fault_nothing_is_wrong(flits):
    assert wrong_of(streams("2", "allgather", flits=flits)) == []
