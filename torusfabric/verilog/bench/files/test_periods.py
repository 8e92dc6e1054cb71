"""Runs periods of the fabric while messages are written, committed and read, and checks all of it.

What the fabric is, it finds in `manifest.json` alone. The environment variables `RUNS` and `SEED`
say how often all messages are written anew, and which. Whatever the host port is given and shows is
written down cycle by cycle; which periods there are, what each node sends in each, and so what
every word that was read should be, follows from that and is compared at the end.
"""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cocotb
from collectives import Words, combiner, expected_words, groups, parts_sent
from direct_port import DirectPort, Place

MANIFEST = json.loads(Path(__file__).parents[1].joinpath("manifest.json").read_text())
PERIODIC, MODE = MANIFEST["periodic"], MANIFEST["modes"][0]

RUNS = int(os.environ.get("RUNS") or 3)
SEED = int(os.environ.get("SEED") or 1)


class Cycle(NamedTuple):
    """What the host does in a cycle: it writes a word, commits for a node, reads, or rests."""

    run: bool
    write: tuple[Place, int] | None = None
    commit: int | None = None
    read: Place | None = None


class Shown(NamedTuple):
    """What the fabric shows in a cycle."""

    word: str
    period: int
    busy: int
    done: int


class Period(NamedTuple):
    """A period: when it is counted, whether a rest follows, and what nodes send."""

    counted: int
    last: bool
    sent: list[Words]


class Host:
    """Drives the host port, and writes down what happens."""

    def __init__(self, dut: Any, port: DirectPort) -> None:
        self.dut, self.port = dut, port
        self.given: list[Cycle] = []
        self.shown: list[Shown] = []

    async def pause(self, *, run: bool) -> None:
        """Let cycles pass, or none, in which nothing is asked for."""
        while self.port.stalls.due():
            await self.cycle(Cycle(run))

    async def cycle(self, given: Cycle) -> Shown:
        """Pass a cycle."""
        dut, base = self.dut, MANIFEST["recv_base"]
        node, address = 0, 0
        if given.write:
            (node, *place), dut.host_wdata.value = given.write
            address = MANIFEST["send_base"] + _offset(*place)
        elif given.commit is not None:
            node, address = given.commit, PERIODIC["commit_address"]
        elif given.read:
            node, *place = given.read
            address = base + _offset(*place)
        dut.run.value = int(given.run)
        dut.host_we.value = int(given.write is not None or given.commit is not None)
        dut.host_node.value, dut.host_addr.value = node, address
        await self.port.edge()
        flags = (int(signal.value) for signal in (dut.period, dut.busy, dut.done))
        self.given.append(given)
        self.shown.append(Shown(str(dut.host_rdata.value), *flags))
        return self.shown[-1]


def _offset(part: int, flit: int) -> int:
    """The address of a flit of a part, from the first."""
    return int(part * MANIFEST["stride"] + flit)


@cocotb.test()
async def random_periods(dut: Any) -> None:
    """Every word that is read, and every count of periods, is right."""
    generator, port = random.Random(SEED), DirectPort(dut, MANIFEST)
    await port.reset()
    host = Host(dut, port)
    await host.cycle(Cycle(run=False))
    places = read_places()
    for number in range(2 + RUNS):
        await episode(host, generator, places, number)
    periods = list(expected_periods(host.given))
    check_counts(host, periods)
    checked = check_words(host, periods)
    cocotb.log.info("%d periods: %d words", len(periods), checked)


async def episode(host: Host, generator: random.Random, places: list[Place], number: int) -> None:
    """Write all messages, commit some of them before and some while periods run; read all words.

    In every third episode `run` is high all the time.
    """
    nodes, width = MANIFEST["nodes"], MANIFEST["width"]
    runs = number > 1 and number % 3 == 1
    for place in sent_places():
        await host.pause(run=runs)
        await host.cycle(Cycle(runs, write=(place, generator.getrandbits(width))))
    committing = [node for node in range(nodes) if number < 2 or generator.random() < 0.5]
    generator.shuffle(committing)
    while len(committing) > (nodes // 4 if number > 1 else 0):
        await host.cycle(Cycle(runs, commit=committing.pop()))
    for _ in range(generator.randint(1, 4 * PERIODIC["cycles"] + 8)):
        if committing and generator.random() < 0.3:
            await host.cycle(Cycle(run=True, commit=committing.pop()))
        else:
            await host.cycle(Cycle(run=True, read=generator.choice(places)))
    if runs:
        for place in places:
            await host.cycle(Cycle(run=True, read=place))
    shown = await host.cycle(Cycle(run=False))
    for _ in range(3 * (PERIODIC["first"] + PERIODIC["cycles"])):
        if not shown.busy:
            break
        shown = await host.cycle(Cycle(run=False, read=generator.choice(places)))
    for place in places:
        await host.cycle(Cycle(run=False, read=place))
    for _ in range(MANIFEST["read_latency"]):
        await host.cycle(Cycle(run=False))


def members() -> list[list[int]]:
    """The nodes of each group."""
    found: list[list[int]] = groups(MANIFEST["topology"], MANIFEST["nodes"], MODE["axes"])
    return found


def sent_places() -> list[Place]:
    """Where the words lie that nodes send."""
    parts = parts_sent(MODE["collective"], len(members()[0]))
    nodes, flits = range(MANIFEST["nodes"]), range(MANIFEST["flits"])
    return [(node, part, flit) for node in nodes for part in range(parts) for flit in flits]


def delivered(sent: list[Words]) -> list[Words]:
    """What each node receives from others, given what is sent.

    Nothing where a node sends what was never written as a whole.
    """
    collective, root = MODE["collective"], MODE["root"] or 0
    found: list[Words] = [{} for _ in sent]
    whole = len(sent_places()) // MANIFEST["nodes"]
    combine = combiner(MANIFEST, MODE)
    for nodes in members():
        if len({len(sent[node]) for node in nodes} | {whole}) > 1:
            continue
        received = expected_words(collective, [sent[node] for node in nodes], root, combine)
        for position, node in enumerate(nodes):
            words = received[position]
            if collective in ("broadcast", "scatter") and position == root:
                words = {}
            elif collective in ("allgather", "alltoall", "gather"):
                words = {place: word for place, word in words.items() if place[0] != position}
            found[node] = words
    return found


def read_places() -> list[Place]:
    """Where the words lie that nodes receive from others."""
    nothing: list[Words] = [{} for _ in range(MANIFEST["nodes"])]
    for node, *place in sent_places():
        nothing[node][tuple(place)] = 0
    return [(node, *place) for node, words in enumerate(delivered(nothing)) for place in words]


def expected_periods(given: list[Cycle]) -> Iterator[Period]:
    """The periods that there should be, given what the host does in every cycle."""
    senders, cycle = Senders(given), 0
    while cycle < len(given):
        if not given[cycle].run:
            cycle += 1
            continue
        # The edge that takes `run` ends this cycle.
        counted = cycle + 1 + PERIODIC["first"]
        last = False
        while not last and counted < len(given):
            last = not given[counted - PERIODIC["run_lead"]].run
            yield Period(counted, last, senders.at(counted - PERIODIC["commit_lead"]))
            cycle, counted = counted, counted + PERIODIC["cycles"]


class Senders:
    """What nodes send, and what the host has written since."""

    def __init__(self, given: list[Cycle]) -> None:
        nodes = range(MANIFEST["nodes"])
        self.sent: list[Words] = [{} for _ in nodes]
        self.written: list[Words] = [{} for _ in nodes]
        self.given, self.cycle = given, 0

    def at(self, deadline: int) -> list[Words]:
        """What they send in the period for which counts what the host did up to a cycle."""
        committed = set()
        for given in self.given[self.cycle : deadline + 1]:
            if given.write:
                (node, *place), word = given.write
                self.written[node][tuple(place)] = word
            elif given.commit is not None:
                committed.add(given.commit)
        self.cycle = max(self.cycle, deadline + 1)
        for node in committed:
            # The two halves of the memory change places.
            self.sent[node], self.written[node] = self.written[node], self.sent[node]
        return [dict(words) for words in self.sent]


def check_counts(host: Host, periods: list[Period]) -> None:
    """Compare `period`, `busy` and `done` of every cycle."""
    count, busy, done = 0, 0, 0
    coming = iter(periods)
    expected = next(coming, None)
    for cycle, (given, shown) in enumerate(zip(host.given, host.shown, strict=True)):
        if expected and cycle == expected.counted:
            count += 1
            if expected.last:
                busy, done = 0, 1
            expected = next(coming, None)
        right = count, busy, done
        assert shown[1:] == right, f"period, busy, done are {shown[1:]} in {cycle}, not {right}"
        if given.run and not busy:
            busy, done = 1, 0


def check_words(host: Host, periods: list[Period]) -> int:
    """Compare every word that was read; returns how many there are."""
    latency, checked = MANIFEST["read_latency"], 0
    words = [delivered(period.sent) for period in periods]
    for cycle, given in enumerate(host.given[: -latency or None]):
        if given.read is None:
            continue
        shown, (node, *place) = host.shown[cycle + latency], given.read
        if not shown.period or tuple(place) not in words[shown.period - 1][node]:
            continue
        right = words[shown.period - 1][node][tuple(place)]
        said = f"flit {place[1]} from {place[0]} at node {node} in period {shown.period}"
        assert not set(shown.word) - {"0", "1"}, f"{said} is {shown.word}"
        word = int(shown.word, 2)
        assert word == right, f"{said}: {word:#x}, not {right:#x}"
        checked += 1
    return checked
