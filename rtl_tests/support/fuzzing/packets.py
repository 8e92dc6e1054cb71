"""Right and wrong packets and commands into the streams of fabrics, in simulation."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import torusfabric as tf
from torusfabric.adapters.streams.drive.beats import Beat, Sink, Source, StreamLog
from torusfabric.adapters.streams.drive.traffic import StreamTraffic, packet_beats
from torusfabric.errors import WorkFailed
from torusfabric.simulation.engines import Engine, choose_engine

from .oracle import Fuzzer
from .packet_model import Command, Packet, Streams

__all__ = ["PacketFuzzer"]

WIDTH = 12

#: Simulated fabrics: their properties, and options of `tf.compile`.
FABRICS: tuple[tuple[Streams, dict[str, Any]], ...] = (
    (Streams(3, WIDTH, ("allgather",), 3), {"flits": 3}),
    (Streams(3, WIDTH, ("alltoall",), 4, any_length=True), {"max_flits": 4}),
    (
        Streams(
            3, WIDTH, ("allgather", "broadcast", "allreduce", "scatter", "reduce-scatter",
                       "gather", "barrier"),
            4, any_length=True, any_root=True, operators=2, commands=True,
        ),
        {"max_flits": 4, "operators": ["add", "max"], "root": "any", "barrier": True},
    ),
)  # fmt: skip

#: Numbers of 32 bits that are invalid in most fields of a command.
BEYOND = (3, 4, 5, 7, 8, 16, 255, 256, 2**16, 2**31, 2**32 - 1)

#: Probabilities that a port pauses in a cycle.
RESTS = (0.0, 0.0, 0.1, 0.5, 0.95)

#: Cycles without a word after which a simulation ends.
PATIENCE = 20_000


class Run(NamedTuple):
    """A command, the words that are sent of it, and the packets of each node."""

    command: Command
    beats: tuple[int, ...]
    sent: list[list[Packet]]


class Runs(NamedTuple):
    """Runs that follow one another after a reset."""

    fabric: int
    runs: list[Run]
    rests: list[float]
    seed: int


class PacketFuzzer(Fuzzer):
    """Check that each run is executed, or dropped for the right reason, without a lost word."""

    name = "packet"
    weight = 640
    batch = 500

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.programs = []
        for streams, options in FABRICS:
            plans = [tf.plan("3", name) for name in streams.modes if name != "barrier"]
            given = plans if streams.commands else plans[0]
            self.programs.append(tf.compile(given, **options))
        self.engines: dict[int, Engine] = {}

    def make(self, draw: random.Random) -> Runs:
        number = draw.randrange(len(FABRICS))
        streams, _ = FABRICS[number]
        self._engine(number)  # the build does not count against the time limit
        runs = [_run(streams, draw) for _ in range(self.batch)]
        rests = [draw.choice(RESTS) for _ in range(2 * streams.nodes + 2)]
        return Runs(number, runs, rests, draw.getrandbits(16))

    def run(self, given: Runs) -> None:
        streams, _ = FABRICS[given.fabric]
        expected = _expected(streams, given, self.programs[given.fabric])
        traffic = _traffic(streams, given, expected)
        try:
            log = self._engine(given.fabric).run_traffic(traffic)
        except WorkFailed as error:
            raise AssertionError(str(error)) from error
        _compare(streams, expected, log)

    def _engine(self, number: int) -> Engine:
        """Return the engine of a fabric, the compiled one if its build pays."""
        if number not in self.engines:
            fabric = tf.Fabric(self.programs[number], width=WIDTH, top="stream", beat=1)
            self.engines[number] = choose_engine(fabric, repeat=self.batch).engine
        return self.engines[number]

    def show(self, given: Runs) -> str:
        streams, _ = FABRICS[given.fabric]
        return f"{len(given.runs)} runs of {','.join(streams.modes)}: {given.runs[:1]} .."


def _run(streams: Streams, draw: random.Random) -> Run:
    """Return a random run, whose command may be refused and whose packets may be dropped."""
    command = Command(
        draw.randrange(len(streams.modes)),
        draw.choice([0, draw.randint(1, streams.most)]) if streams.any_length else 0,
        draw.randrange(streams.nodes),
        draw.randrange(streams.operators),
        draw.getrandbits(32),
    )
    if not streams.commands:
        return Run(Command(), (), _messages(streams, Command(), draw))
    if draw.random() < 0.2:
        field = draw.choice(Command._fields)
        command = command._replace(**{field: draw.choice(BEYOND)})
    beats = tuple(command)
    if draw.random() < 0.05:  # refused, with a tag of 0 where it is missing
        beats = (beats + tuple(draw.choices(BEYOND, k=3)))[: draw.randint(1, 8)]
        command = Command(*(*beats, *[0] * 5)[:5])
    if streams.refusal(command, len(beats)):
        return Run(command, beats, [[] for _ in range(streams.nodes)])
    return Run(command, beats, _messages(streams, command, draw))


def _messages(streams: Streams, command: Command, draw: random.Random) -> list[list[Packet]]:
    """Return random packets of all nodes for a run."""
    length = command.length or (
        draw.randint(1, streams.most) if streams.any_length else streams.most
    )
    if streams.modes[command.mode] == "barrier":
        length = 1
    spoils = draw.random() < 0.4
    sent = []
    for node in range(streams.nodes):
        count = streams.packets(command, node)
        packets = [Packet(k, _words(length, draw)) for k in draw.sample(range(count), count)]
        if packets and spoils and draw.random() < 0.5:
            packets = _spoiled(packets, streams, draw)
        sent.append(packets)
    return sent


def _spoiled(packets: list[Packet], streams: Streams, draw: random.Random) -> list[Packet]:
    """Return as many packets, some of which are wrong."""
    count, place = len(packets), draw.randrange(len(packets))
    number, words = packets[place]
    match draw.randrange(6):
        case 0:  # of a random length
            length = draw.choice([1, len(words) + 1, streams.most + 1, draw.randint(1, 40)])
            packets[place] = Packet(number, _words(length, draw))
        case 1 | 2:  # to a random destination
            packets[place] = Packet(draw.randrange(4), words)
        case 3:  # tlast is missing
            lost = packets[place : place + 2]
            packets[place : place + 2] = [Packet(number, sum((p.words for p in lost), ()))]
        case 4 if len(words) > 1:  # tlast is early
            cut = draw.randint(1, len(words) - 1)
            packets[place : place + 1] = [Packet(number, words[:cut]), Packet(number, words[cut:])]
        case _:  # one is lost
            del packets[place]
    while len(packets) < count:
        packets.append(Packet(draw.randrange(4), _words(draw.randint(1, streams.most), draw)))
    return packets[:count]


def _words(length: int, draw: random.Random) -> tuple[int, ...]:
    """Return random words of 16 bits; the bits above the width do not count."""
    return tuple(draw.choices(range(1 << 16), k=length))


class _Expected(NamedTuple):
    """Expected results: words of each node, statuses, and cycles of runs."""

    words: list[list[tuple[int, bool, int]]]
    statuses: list[int]
    cycles: list[int]


def _expected(streams: Streams, given: Runs, program: Any) -> _Expected:
    """Return the expected results of some runs."""
    expected = _Expected([[] for _ in range(streams.nodes)], [], [])
    for run in given.runs:
        error, cycles = streams.refusal(run.command, len(run.beats or run.command)), 0
        if not error:
            outcome = streams.outcome(run.command, run.sent)
            error = outcome.error
            if not error and streams.modes[run.command.mode] != "barrier":
                mode = run.command.mode if streams.commands else None
                length = outcome.length if streams.any_length else None
                cycles = program.cycles(length, mode=mode)
                expected.cycles.append(cycles)
            for words, packets in zip(expected.words, outcome.received, strict=True):
                words += ((b.word, b.last, b.number) for b in packet_beats(packets, WIDTH))
        expected.statuses.extend((run.command.tag, error, cycles))
    return expected


def _traffic(streams: Streams, given: Runs, expected: _Expected) -> StreamTraffic:
    """Return the beats into all streams, and the number of words to wait for."""
    rests = iter(given.rests)
    sources, sinks = [], []
    for node, words in enumerate(expected.words):
        beats = [beat for run in given.runs for beat in packet_beats(run.sent[node], WIDTH)]
        sources.append(Source(f"s_axis_{node}", beats, next(rests)))
        sinks.append(Sink(f"m_axis_{node}", len(words), next(rests)))
    if streams.commands:
        beats = [
            Beat(word, k == len(run.beats) - 1)
            for run in given.runs
            for k, word in enumerate(run.beats)
        ]
        sources.append(Source("s_axis_cmd", beats, next(rests)))
        sinks.append(Sink("m_axis_status", len(expected.statuses), next(rests)))
    return StreamTraffic(sources, sinks, given.seed, PATIENCE)


def _compare(streams: Streams, expected: _Expected, log: StreamLog) -> None:
    """Check that the received words, statuses and cycles are the expected ones."""
    for node, words in enumerate(expected.words):
        got = [arrival[:3] for arrival in log.arrivals[f"m_axis_{node}"]]
        _same(f"words of node {node}", got, words)
    if streams.commands:
        got = [arrival.word for arrival in log.arrivals["m_axis_status"]]
        _same("statuses", got, expected.statuses)
    _same("cycles", [cycles for _, cycles in log.runs], expected.cycles)


def _same(what: str, got: list[Any], right: list[Any]) -> None:
    """Check that two lists are equal; the error shows the first difference."""
    if got == right:
        return
    pairs = enumerate(zip(got, right, strict=False))
    place = next((k for k, (a, b) in pairs if a != b), min(len(got), len(right)))
    here = slice(max(place - 2, 0), place + 4)
    raise AssertionError(f"{what} from {here.start} are {got[here]}, not {right[here]}")
