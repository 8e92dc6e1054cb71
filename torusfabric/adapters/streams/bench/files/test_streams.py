"""Test of a fabric with streams by random packets: every word and the cycles are checked.

All facts about the fabric come from `manifest.json`. Environment variables: `RUNS`, number of runs
of each mode; `SEED`, seed of the random values; `STALL`, probability in each cycle that a port
stalls; `FAULTS`, number of runs with a fault for each run without one.
"""

import math
import os
import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from collectives import PERSONALIZED, Words, sent_part_count
from packets import FaultChoices, FaultyRun, Packet, spoil_run
from runs import (
    CYCLES,
    MANIFEST,
    RUNS,
    SEED,
    Run,
    choose_run,
    expected_deliveries,
    groups_of_mode,
    random_send_words,
    run_count,
)
from stalls import Stalls
from stream_port import Sink, Source

PORTS = MANIFEST["ports"]

#: The nodes with streams: all but those that only relay.
NODES = [node for node in range(MANIFEST["nodes"]) if node not in MANIFEST.get("relays", ())]

#: True if runs need commands.
COMMANDED = "command_words" in MANIFEST

#: True if commands are written to the registers of a bus.
BUS = "bus" in MANIFEST

#: The mode that is a barrier, if there is one.
BARRIER = MANIFEST.get("barrier")

#: Flits of a word of the streams of nodes.
BEAT = MANIFEST.get("beat", 1)

#: Number of runs with a fault for each run without one.
FAULTS = float(os.environ.get("FAULTS") or 0.5)

#: Cycles without a packet after which the test ends: if all have arrived, and if some are missing.
SETTLING, PATIENCE = 100, 5000

#: Cycles of the reset: at least a few of the slowest clock.
RESET = 12


class Bench:
    """The drivers at all streams of the simulated fabric, and a record of the runs.

    A driver sends or receives packets. The record has the cycles and errors of runs.
    """

    def __init__(self, dut: Any) -> None:
        self.dut, stalls = dut, Stalls(dut, MANIFEST)
        self.sources = [Source(dut, PORTS, f"s_axis_{node}", stalls, BEAT) for node in NODES]
        self.sinks = [Sink(dut, PORTS, f"m_axis_{node}", stalls, BEAT) for node in NODES]
        direct = COMMANDED and not BUS
        self.commands = [Source(dut, PORTS, "s_axis_cmd", stalls)] if direct else []
        self.statuses = [Sink(dut, PORTS, "m_axis_status", stalls)] if direct else []
        self.registers = list(_register_drivers(dut))
        self.cycles: list[int] = []
        self.errors = [0]

    @property
    def streams(self) -> list[Any]:
        """All drivers that send or receive."""
        return [*self.sources, *self.sinks, *self.statuses, *self.command_drivers]

    @property
    def command_drivers(self) -> list[Any]:
        """The drivers that send commands; empty if the fabric takes no commands."""
        return [*self.commands, *self.registers]

    async def start(self) -> None:
        """Reset the fabric, and start all drivers."""
        generator = random.Random(f"clocks {SEED}")
        for name, port in PORTS.items():
            signal = getattr(self.dut, name)
            if port["protocol"] == "clock":
                if BUS and name == "clk":
                    continue  # the driver of the bus drives it
                # Clocks of nodes have random periods, unrelated to the clock of the fabric.
                period = 10_000 if name == "clk" else generator.randrange(4_000, 24_000, 2)
                Clock(signal, period, "ps").start()
            elif port["direction"] == "input" and port["role"] != "bus":
                signal.value = int(port["role"] == "reset")
        for _ in range(RESET):
            await RisingEdge(self.dut.clk)
        for name, port in PORTS.items():
            if port["role"] == "reset":
                getattr(self.dut, name).value = 0
        for stream in self.streams:
            cocotb.start_soon(stream.run())
        if not BUS:
            cocotb.start_soon(self.record_runs())

    async def record_runs(self) -> None:
        """Record `cycles` at the end of each run, and `error` when it changes."""
        was_busy = False
        while True:
            await RisingEdge(self.dut.clk)
            busy = self.dut.busy.value == 1
            if was_busy and not busy:
                self.cycles.append(int(self.dut.cycles.value))
            was_busy = busy
            error = int(self.dut.error.value)
            if error != self.errors[-1]:
                self.errors.append(error)

    async def wait_for_packets(self, expected: list[list[Packet]]) -> None:
        """Wait until all packets are sent and received, and then for possible excess packets.

        The wait ends after `SETTLING` cycles without any change, or `PATIENCE` if packets are
        missing.
        """
        quiet, before = 0, list[int]()
        while True:
            await RisingEdge(self.dut.clk)
            came = [len(sink.packets) for sink in self.sinks]
            complete = all(n >= len(e) for n, e in zip(came, expected, strict=True))
            complete &= not any(source.packets for source in [*self.sources, *self.command_drivers])
            waiting = [len(stream.packets) for stream in self.streams]
            quiet, before = (quiet + 1 if waiting == before else 0), waiting
            if quiet > (SETTLING if complete else PATIENCE):
                return


def _register_drivers(dut: Any) -> Iterator[Any]:
    """Yield the driver that starts runs by registers of a bus, if the fabric has a bus.

    `dut` is the simulated fabric.
    """
    if BUS:
        from command_registers import CommandRegisters  # only benches behind a bus have this file

        yield CommandRegisters(dut, MANIFEST)


def barrier_run() -> Run:
    """Return a run of a barrier: every node sends a word, and gets it back when all have sent."""
    cycles = [{"from": 1, "constant": 0, "per_flit": 0}]
    mode = {"mode": BARRIER, "collective": "barrier", "axes": [], "cycles": cycles, "chunks": 1}
    return Run(mode | {"operators": [], "groups": [NODES]}, 1, 0, 0)


class RandomRun(NamedTuple):
    """A run: its sent packets, and the packets that each node must receive."""

    run: Run
    sent: FaultyRun
    received: list[list[Packet]]

    @property
    def error(self) -> int:
        """The error number that the fabric must report; 0 for a run without a fault."""
        return int(self.sent.error)


def command_packet(drawn: RandomRun, tag: int) -> Packet:
    """Return the command that asks for a run, as a packet.

    Every second command leaves the length to the packets, except in a mode with several forms,
    where the length chooses the form. `drawn` is the run with its fault, if it has one. `tag` is
    the number of the run, which the status repeats.
    """
    run = drawn.run
    says_length = tag % 2 or "forms" in run.mode
    words = run.inputs | {"length": run.length * says_length, "tag": tag} | drawn.sent.command
    return Packet(0, tuple(words[name] for name in MANIFEST["command_words"]))


def sent_packets(run: Run, sent: list[Words], generator: random.Random) -> list[list[Packet]]:
    """Return the packets that each node sends, with the destinations in random order.

    `run` has the mode and the root, and `sent` the words of each node. `generator` shuffles the
    packets.
    """
    packets: dict[int, list[Packet]] = {node: [] for node in NODES}
    for nodes in groups_of_mode(run.mode):
        for position, node in enumerate(nodes):
            if node not in packets:
                continue
            if run.mode["collective"] in ("broadcast", "scatter") and position != run.root:
                continue
            words = _planned_words(run.mode, position, len(nodes), sent[node])
            packets[node] = list(packets_from_words(words))
            generator.shuffle(packets[node])
    return list(packets.values())


def _planned_words(mode: dict[str, Any], position: int, size: int, words: Words) -> Words:
    """Return those of `words` that the node at a position of its group of `size` nodes sends.

    It leaves out words beyond the end of a message, messages to positions that a smaller group
    lacks and, in a pattern, messages that the node does not have. With loaded tables, nodes send a
    packet for each of these positions and for each number of a pattern, and all packets have the
    same length.
    """
    if "tables" in MANIFEST:
        return words
    if len(set(map(len, mode.get("groups", [])))) > 1:
        if mode["collective"] in PERSONALIZED:
            words = {at: word for at, word in words.items() if at[0] < size}
        if mode["collective"] == "exchange":
            targets = [
                k for each in mode["origins"][:size] for k, p in enumerate(each) if p == position
            ]
            words = {at: word for at, word in words.items() if at[0] in targets}
    if "sent_flits" in mode:
        lengths = mode["sent_flits"][position]
        return {at: word for at, word in words.items() if at[1] < lengths[at[0]]}
    if "messages" in mode:
        numbers = {each["number"] for each in mode["messages"] if each["source"] == position}
        return {at: word for at, word in words.items() if at[0] in numbers}
    return words


def packets_from_words(words: Words) -> Iterator[Packet]:
    """Yield words as packets, in ascending order of their destination or origin.

    `words` has each flit by the pair (destination or origin, number of the flit).
    """
    for number in sorted({part for part, _ in words}):
        flits = sorted(flit for part, flit in words if part == number)
        yield Packet(number, tuple(words[number, flit] for flit in flits))


def received_packets(run: Run, sent: list[Words]) -> list[list[Packet]]:
    """Return the packets that each node must receive, given the words that all nodes send.

    In a broadcast or a scatter, the origin of a packet is the root of the run. With loaded tables,
    packets of short messages are as long as all others; their further words are None.
    """
    most = run.length if "tables" in MANIFEST and "received_flits" in run.mode else 0
    single = run.mode["collective"] in ("broadcast", "scatter")
    return [
        [
            Packet(
                run.root if single else packet.number,
                packet.words + (None,) * (most - len(packet.words)),
            )
            for packet in packets_from_words(words)
        ]
        for node, words in enumerate(expected_deliveries(run, sent))
        if node in NODES
    ]


def fault_choices(run: Run) -> FaultChoices:
    """Return the limits of packets and commands of a run; a fault exceeds one of them."""
    size, most = len(groups_of_mode(run.mode)[0]), MANIFEST.get("max_flits") or MANIFEST["flits"]
    parts, commands = sent_part_count(run.mode, size), dict[str, int]()
    if COMMANDED and not BUS:
        commands = {"mode": len(MANIFEST["modes"]) + (BARRIER is not None), "length": most + 1}
        if run.mode.get("root") == "any":
            commands["root"] = size
        if len(run.mode["operators"]) > 1:
            commands["operation"] = len(run.mode["operators"])
    personal = run.mode["collective"] in (*PERSONALIZED, "exchange", "pattern")
    bits = PORTS[f"s_axis_{NODES[0]}_tdest"]["width"] if personal else 0
    return FaultChoices(most, "max_flits" in MANIFEST, commands, parts * personal, bits)


def random_runs(generator: random.Random) -> list[RandomRun]:
    """Return runs in random order, some with a fault: packets to send, and packets to expect.

    `generator` makes all random choices.
    """
    extra = math.ceil(FAULTS * RUNS)
    counts = [run_count(mode) for mode in MANIFEST["modes"]]
    barriers = RUNS + extra if BARRIER is not None else 0
    cycles = CYCLES / (sum(count + extra for count in counts) + barriers)
    runs = [
        (choose_run(generator, mode, k, cycles), k < count)
        for mode, count in zip(MANIFEST["modes"], counts, strict=True)
        for k in range(count + extra)
    ]
    if BARRIER is not None:
        runs += [(barrier_run(), k < RUNS) for k in range(RUNS + extra)]
    generator.shuffle(runs)
    drawn: list[RandomRun] = []
    for run, good in runs:
        words = random_send_words(generator, run)
        packets = sent_packets(run, words, generator)
        if good:
            drawn.append(RandomRun(run, FaultyRun(0, packets, {}), received_packets(run, words)))
        else:
            bad = spoil_run(generator, fault_choices(run), packets)
            drawn.append(RandomRun(run, bad, [[] for _ in NODES]))
    return drawn


@cocotb.test()
async def random_packets(dut: Any) -> None:
    """Check that all words are right, runs take the predicted cycles, and no more words arrive.

    Runs with a fault are dropped, with the right error.
    """
    generator = random.Random(SEED)
    bench = Bench(dut)
    await bench.start()
    runs = random_runs(generator)
    expected: list[list[Packet]] = [[] for _ in NODES]
    if COMMANDED:
        for source in bench.command_drivers:
            source.packets.extend(command_packet(run, tag) for tag, run in enumerate(runs))
    for run in runs:
        for source, packets in zip(bench.sources, run.sent.sent, strict=True):
            source.packets.extend(packets)
        for at_node, packets in zip(expected, run.received, strict=True):
            at_node += packets
    await bench.wait_for_packets(expected)
    for node, sink, right_packets in zip(NODES, bench.sinks, expected, strict=True):
        check_packets(node, sink.packets, right_packets)
    check_errors(bench, runs)
    good = [drawn.run for drawn in runs if not drawn.error]
    right = [run.predicted_cycles for run in good if run.mode["mode"] != BARRIER]
    for registers in bench.registers:
        cycles = [status.words[2] for status in registers.statuses if status.words[2]]
        bench.cycles, right = (
            (cycles, right) if COMMANDED else ([await registers.cycles()], right[-1:])
        )
    assert bench.cycles == right, f"runs take {bench.cycles} cycles, not {right}"
    count = sum(len(packet.words) for packets in expected for packet in packets)
    dropped = len(runs) - len(good)
    cocotb.log.info("%d runs: %d words; %d dropped", len(good), count, dropped)


def check_errors(bench: Bench, runs: list[RandomRun]) -> None:
    """Check the reported error of each run, by its status or the output `error`.

    `bench` has the record of the test, and `runs` are the runs with their expected errors. If the
    fabric takes no commands and has no bus, the changes of its output `error` are compared.
    """
    for statuses in [
        *(sink.packets for sink in bench.statuses),
        *(registers.statuses for registers in bench.registers if COMMANDED),
    ]:
        said = [
            Packet(0, (tag, drawn.error, 0 if drawn.error else drawn.run.predicted_cycles))
            for tag, drawn in enumerate(runs)
        ]
        assert statuses == said, f"statuses are {statuses}, not {said}"
    if not COMMANDED and not BUS:
        errors = [error for error, _ in groupby([0, *(drawn.error for drawn in runs)])]
        assert bench.errors == errors, f"errors are {bench.errors}, not {errors}"


def check_packets(node: int, packets: list[Packet], expected: list[Packet]) -> None:
    """Compare the received packets with the expected ones.

    `packets` are the packets that node number `node` has received.
    """
    for k, (got, right) in enumerate(zip(packets, expected, strict=False)):
        assert got.has_words_of(right), f"packet {k} at node {node} is {got}, not {right}"
    assert len(packets) == len(expected), (
        f"node {node} received {len(packets)} packets, not {len(expected)}"
    )
