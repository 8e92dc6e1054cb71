"""A bench for fabrics with streams: random packets, random stalls, and a check of every word.

The bench knows neither algorithm nor hardware. The expected packets follow from the sent packets
and the definition of the collective.
"""

from collections import deque

import numpy as np
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from fabrics import build_fabric

from torusfabric.adapters.streams.drive.messages import random_run_packets
from torusfabric.rtl.assembly import Assembly
from torusfabric.simulation.engines import Job

__all__ = ["Message", "StreamBench", "check", "messages_of", "streams"]

#: Cycles without any beat after which a bench stops.
PATIENCE = 120

#: Period of the fabric clock, in seconds.
PERIOD = 1e-6


class Message:
    """Packets that all nodes send for a run, and packets that they must receive.

    Attributes
    ----------
    job : Job
        Choices of the run.
    sent : list of (list of (int, list of int))
        Packets that each node sends: the destination, and the words.
    expected : list of (list of (int, list of int))
        Packets that each node must receive: the origin, and the words.
    error : int
        Expected number of the error in the status, 0 for none.
    """

    def __init__(self, job, sent, expected):
        self.job, self.sent, self.expected, self.error = job, sent, expected, 0

    def fails(self, error):
        """Expect that the message is dropped for an error; return the message."""
        self.error, self.expected = error, [[] for _ in self.expected]
        return self


def message_of(fabric, job, rng):
    """Return a message of random words for each node."""
    exchange = random_run_packets(fabric, job, seed=int(rng.integers(1 << 30)))
    sent, expected = (
        [[(number, list(words)) for number, words in packets] for packets in side]
        for side in exchange
    )
    return Message(job, sent, expected)


def messages_of(fabric, jobs, *, seed=1):
    """Return random messages for jobs, or for a number of runs.

    Given a number, the lengths of runs are random if the fabric leaves them open.
    """
    rng = np.random.default_rng(seed)
    if isinstance(jobs, int):
        any_length = fabric.program.any_length
        jobs = [Job(length=int(rng.integers(1, fabric.flits + 1)) if any_length else None)
                for _ in range(jobs)]  # fmt: skip
    return [message_of(fabric, job, rng) for job in jobs]


class Source:
    """Sender of beats into a stream; an offered beat stays until it is taken."""

    def __init__(self, design, prefix, beats, rests):
        self._design, self._prefix, self._beats = design, prefix, deque(beats)
        self._rests, self._offered = rests, False

    def _signal(self, name):
        return getattr(self._design, f"{self._prefix}_{name}")

    def drive(self, ctx, rng):
        """Offer a beat before an edge, or random signals without `tvalid`."""
        if not self._offered:
            self._offered = bool(self._beats) and rng.random() >= self._rests
            beat = self._beats[0] if self._offered else {"tlast": int(rng.integers(2))}
            ctx.set(self._signal("tvalid"), self._offered)
            for name, value in beat.items():
                ctx.set(self._signal(name), value)

    def stop(self, ctx):
        """Offer nothing."""
        ctx.set(self._signal("tvalid"), 0)

    def look(self, ctx):
        """Return True if the edge takes the beat."""
        taken = self._offered and ctx.get(self._signal("tready"))
        if taken:
            self._beats.popleft()
            self._offered = False
        return taken


class Sink:
    """Receiver of beats from a stream, which checks that a waiting beat stays."""

    def __init__(self, design, prefix, rests, fields):
        self._design, self._prefix, self._rests, self._fields = design, prefix, rests, fields
        self._held, self._packet, self.packets = None, [], []

    def _signal(self, name):
        return getattr(self._design, f"{self._prefix}_{name}")

    def drive(self, ctx, rng):
        """Set `tready` at random before an edge."""
        ctx.set(self._signal("tready"), rng.random() >= self._rests)

    def look(self, ctx):
        """Return True if the edge takes a beat."""
        if not ctx.get(self._signal("tvalid")):
            assert self._held is None, "a word that waits must stay"
            return False
        shown = tuple(ctx.get(self._signal(name)) for name in ("tdata", "tlast", *self._fields))
        assert self._held in (None, shown), "a word that waits must stay"
        ready = ctx.get(self._signal("tready"))
        self._held = None if ready else shown
        if ready:
            data, last, *fields = shown
            self._packet.append(data)
            if last:
                self.packets.append((*fields, self._packet))
                self._packet = []
        return ready


class StreamBench:
    """Driver of all ports of a fabric with streams.

    Parameters
    ----------
    fabric : Fabric
        The fabric.
    stall : float or (float, float)
        Probability that a port pauses in a cycle: of senders, and of receivers.
    seed : int
        Seed of pauses, clocks and unused signals.

    Attributes
    ----------
    statuses : list of (list of int)
        Words of each status.
    runs : list of int
        Cycles of each run.
    ends : list of int
        Clock edge with which each run ended.
    edges : int
        Clock edges from the first beat to the last.
    """

    def __init__(self, fabric, stall=0.0, *, seed=1):
        self.fabric, self.design = fabric, Assembly(fabric.netlist)
        self._stall = stall if isinstance(stall, tuple) else (stall, stall)
        self._rng = np.random.default_rng(seed)
        self.statuses, self.runs, self.ends, self.edges = [], [], [], 0
        self._before = None

    def interrupt(self, messages, edges):
        """Send messages before the next `run`, and reset the fabric after `edges` clock edges.

        Packets that arrive before the reset are ignored.
        """
        self._before = self._ports(messages, None)[:2], edges

    def run(self, messages, commands=None):
        """Send messages, and receive all packets; return the wrong packets, by node.

        Commands are made from the messages by default, if the fabric takes any. The tag of a
        command is its number.
        """
        sources, sinks, status = self._ports(messages, commands)
        wanted = sum(len(w) for each in messages for node in each.expected for _, w in node)
        wanted += 3 * len(commands or messages) if status else 0

        if self.fabric.clocks == "per-node":
            self._run_apart(sources, sinks, wanted)
        else:
            self._run(sources, sinks, wanted)
        self.statuses = [words for (words,) in status.packets] if status else []
        return self._wrong(messages, sinks)

    def _run(self, sources, sinks, wanted):
        """Drive all ports, edge by edge, until all words have arrived and no more follow."""

        domain, whole = ClockDomain("sync"), Module()
        whole.domains += domain
        whole.submodules.design = self.design

        async def testbench(ctx):
            if self._before:
                await self._interrupted(ctx, domain.rst)
            quiet = got = 0
            while quiet < PATIENCE and (got < wanted or quiet < PATIENCE // 8):
                for port in (*sources, *sinks):
                    port.drive(ctx, self._rng)
                taken = [port.look(ctx) for port in sources]
                came = [port.look(ctx) for port in sinks]
                was_busy = ctx.get(self.design.busy)
                await ctx.tick()
                self.edges += 1
                got += sum(came)
                quiet = 0 if any(taken) or any(came) or was_busy else quiet + 1
                if was_busy and not ctx.get(self.design.busy):
                    self.runs.append(ctx.get(self.design.cycles))
                    self.ends.append(self.edges)
            self.edges -= quiet

        simulator = Simulator(whole)
        simulator.add_clock(PERIOD)
        simulator.add_testbench(testbench)
        simulator.run()

    async def _interrupted(self, ctx, reset):
        """Drive all ports for a while, then reset the fabric."""
        (sources, sinks), edges = self._before
        for _ in range(edges):
            for port in (*sources, *sinks):
                port.drive(ctx, self._rng)
            for port in (*sources, *sinks):
                port.look(ctx)
            await ctx.tick()
        for port in sources:
            port.stop(ctx)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)

    def _run_apart(self, sources, sinks, wanted):
        """Drive all ports with a clock for each node, of a random period and phase."""
        heard = {"got": 0, "last": 0, "over": False}
        simulator = Simulator(self.design)
        simulator.add_clock(PERIOD)

        async def fabric(ctx):
            while not heard["over"]:
                was_busy = ctx.get(self.design.busy)
                await ctx.tick()
                self.edges += 1
                if was_busy and not ctx.get(self.design.busy):
                    self.runs.append(ctx.get(self.design.cycles))
                quiet = self.edges - heard["last"]
                heard["over"] = quiet > (10 if heard["got"] < wanted else 1) * PATIENCE

        def clocked(clock, ports, period, phase):
            async def testbench(ctx):
                await ctx.delay(phase)
                while not heard["over"]:
                    for port in ports:
                        port.drive(ctx, self._rng)
                    await ctx.delay(period / 2)
                    came = [port.look(ctx) for port in ports]
                    if any(came):
                        heard["last"] = self.edges
                        heard["got"] += came[-1]
                    ctx.set(clock, 1)
                    await ctx.delay(period / 2)
                    ctx.set(clock, 0)

            return testbench

        for node in range(self.fabric.nodes):
            ports = sources[node], sinks[node]
            period = PERIOD * (0.4 + 2 * self._rng.random())
            clock = getattr(self.design, f"clk_{node}")
            phase = PERIOD * self._rng.random()
            simulator.add_testbench(clocked(clock, ports, period, phase))
        simulator.add_testbench(fabric)
        simulator.run()

    def _ports(self, messages, commands):
        """Return the senders, the receivers, and the receiver of statuses or None."""
        rests, waits = self._stall
        dests = "s_axis_0_tdest" in self.fabric.netlist.inputs
        sources, sinks = [], []
        for node in range(self.fabric.nodes):
            beats = [
                {"tdata": word, "tlast": int(k == len(words) - 1)}
                | ({"tdest": dest} if dests else {})
                for message in messages
                for dest, words in message.sent[node]
                for k, word in enumerate(words)
            ]
            sources.append(Source(self.design, f"s_axis_{node}", beats, rests))
            sinks.append(Sink(self.design, f"m_axis_{node}", waits, ["tid"]))
        status = None
        if "s_axis_cmd_tdata" in self.fabric.netlist.inputs:
            if commands is None:
                jobs = [message.job for message in messages]
                commands = [
                    (j.mode or 0, (j.length or 0) * (k % 2), j.root or 0, j.operation or 0, k)
                    for k, j in enumerate(jobs)
                ]
            beats = [
                {"tdata": word, "tlast": int(k == len(command) - 1)}
                for command in commands
                for k, word in enumerate(command)
            ]
            sources.append(Source(self.design, "s_axis_cmd", beats, rests))
            status = Sink(self.design, "m_axis_status", waits, [])
            sinks.append(status)
        return sources, sinks, status

    def _wrong(self, messages, sinks):
        """Return the nodes with wrong packets: node, received and expected packets."""
        wrong = []
        for node in range(self.fabric.nodes):
            expected = [packet for message in messages for packet in message.expected[node]]
            if sinks[node].packets != expected:
                wrong.append((node, sinks[node].packets, expected))
        return wrong


def streams(topology, collectives, **options):
    """Return a fabric with streams of single flits, for collectives by their names."""
    return build_fabric(topology, collectives, **{"top": "stream", "beat": 1} | options)


def check(fabric, jobs, stall=0, seed=1):
    """Execute jobs, or a number of runs, and check every word and cycle; return the bench."""
    bench, messages = StreamBench(fabric, stall, seed=seed), messages_of(fabric, jobs, seed=seed)
    assert bench.run(messages) == []
    jobs = [message.job for message in messages]
    assert bench.runs == [fabric.program.cycles(job.length, mode=job.mode) for job in jobs]
    return bench
