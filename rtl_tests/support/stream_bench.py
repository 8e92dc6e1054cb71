"""A bench for fabrics with streams: random packets, random stalls, and every word checked.

It knows no algorithm and no hardware: what must be received follows from what was sent and from the
definition of the collective.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from amaranth.sim import Simulator

from torusfabric import collective as collectives
from torusfabric.rtl.assembly import Assembly

__all__ = ["Message", "StreamBench", "messages_of", "packets_of"]

#: Cycles without any beat after which a bench gives up.
PATIENCE = 2000


@dataclass
class Message:
    """What all nodes send for a run, and what they have to receive.

    Parameters
    ----------
    sent : list of (list of (int or None, list of int))
        Of each node, its packets: the destination, and the words.
    expected : list of (list of (int, list of int))
        Of each node, its packets: the origin, and the words.
    """

    sent: list
    expected: list


def packets_of(part, messages, *, root=None, operation=None, width, rng):
    """A message for each node, given the words that a host would write."""
    layout, collective = part.layout, part.schedule.collective
    if root is not None:
        layout = layout.with_root(root)
        collective = layout.blocks.collective
    position = part.groups.position
    words, receives = collectives.expected_words(
        part.layout, messages, operator=part.mode.operator_of(operation), width=width, root=root
    )
    sent, expected = [], []
    for node in range(len(messages)):
        senders = collective.root == position[node] if collective.single_origin else True
        parts = part.groups.size if collective.personal else 1
        split = messages[node].reshape(parts, -1).tolist()
        numbers = rng.permutation(parts) if collective.personal else [0]
        dest = (lambda k: int(k)) if collective.personal else (lambda k: None)
        sent.append([(dest(k), split[k]) for k in numbers] if senders else [])
        origins = range(part.groups.size) if collective.from_each else [collective.root or 0]
        if not collective.from_each and not collective.single_origin:
            origins = [0]
        got = words[node].reshape(len(origins), -1).tolist()
        expected.append(
            [(o, w) for o, w in zip(origins, got, strict=True)] if receives[node] else []
        )
    return Message(sent, expected)


def messages_of(fabric, count, *, seed=1, mode=0, lengths=None):
    """Random messages for runs of a mode, of any length if the fabric leaves it open."""
    program, rng = fabric.program, np.random.default_rng(seed)
    made = []
    for k in range(count):
        length = fabric.flits
        if program.any_length:
            length = lengths[k % len(lengths)] if lengths else int(rng.integers(1, length + 1))
        words = collectives.random_messages(
            program.part(mode).layout, length, width=fabric.width, seed=seed * 1000 + k
        )
        made.append(packets_of(program.part(mode), words, width=fabric.width, rng=rng))
    return made


@dataclass
class StreamBench:
    """Drives all ports of a fabric with streams.

    Parameters
    ----------
    fabric : Fabric
    stall : float or dict of str to float
        How often a port rests: ``"s"`` those of what is sent, ``"m"`` of what is received.
    seed : int

    Attributes
    ----------
    received : list of (list of (int, list of int))
        Of each node, the packets that it has received.
    edges : int
    """

    fabric: object
    stall: object = 0.0
    seed: int = 1
    received: list = field(default_factory=list)
    statuses: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    edges: int = 0

    def run(self, messages, *, commands=()):
        """Send messages, and receive until nothing comes any more; returns the wrong words."""
        fabric = self.fabric
        design = Assembly(fabric.netlist)
        nodes, rng = fabric.nodes, np.random.default_rng(self.seed)
        stall = self.stall if isinstance(self.stall, dict) else {"s": self.stall, "m": self.stall}
        beats = [deque(self._beats(message.sent[node] for message in messages))
                 for node in range(nodes)]  # fmt: skip
        wanted = sum(len(w) for message in messages for node in message.expected for _, w in node)
        self.received = [[] for _ in range(nodes)]
        partial = [[] for _ in range(nodes)]
        signal = lambda name: getattr(design, name)
        dests = hasattr(design, "s_axis_0_tdest")

        async def testbench(ctx):
            quiet = got = 0
            offered = [False] * nodes
            held = [None] * nodes
            while quiet < PATIENCE and got < wanted:
                for node in range(nodes):
                    if not offered[node]:
                        offered[node] = bool(beats[node]) and rng.random() >= stall["s"]
                        word, last, dest = (
                            beats[node][0]
                            if offered[node]
                            else (
                                int(rng.integers(1 << min(fabric.width, 30))),
                                int(rng.integers(2)),
                                0,
                            )
                        )
                        ctx.set(signal(f"s_axis_{node}_tvalid"), offered[node])
                        ctx.set(signal(f"s_axis_{node}_tdata"), word)
                        ctx.set(signal(f"s_axis_{node}_tlast"), last)
                        if dests:
                            ctx.set(signal(f"s_axis_{node}_tdest"), dest or 0)
                    ctx.set(signal(f"m_axis_{node}_tready"), rng.random() >= stall["m"])
                moved = False
                for node in range(nodes):
                    if offered[node] and ctx.get(signal(f"s_axis_{node}_tready")):
                        beats[node].popleft()
                        offered[node] = False
                        moved = True
                    valid = ctx.get(signal(f"m_axis_{node}_tvalid"))
                    shown = None
                    if valid:
                        shown = tuple(
                            ctx.get(signal(f"m_axis_{node}_{name}"))
                            for name in ("tdata", "tlast", "tid")
                        )
                    assert held[node] in (None, shown), "a word that waits must stay"
                    held[node] = shown
                    if valid and ctx.get(signal(f"m_axis_{node}_tready")):
                        held[node] = None
                        moved = True
                        got += 1
                        data, last, number = shown
                        partial[node].append(data)
                        if last:
                            self.received[node].append((number, partial[node]))
                            partial[node] = []
                busy = ctx.get(design.busy)
                await ctx.tick()
                self.edges += 1
                if busy and not ctx.get(design.busy):
                    self.runs.append(ctx.get(design.cycles))
                quiet = 0 if moved else quiet + 1

        simulator = Simulator(design)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()
        return self.wrong(messages)

    @staticmethod
    def _beats(packets_by_message):
        for packets in packets_by_message:
            for dest, words in packets:
                for k, word in enumerate(words):
                    yield word, int(k == len(words) - 1), dest

    def wrong(self, messages):
        """The packets that are not what must be received, by node."""
        wrong = []
        for node, got in enumerate(self.received):
            expected = [packet for message in messages for packet in message.expected[node]]
            if got != expected:
                wrong.append((node, got, expected))
        return wrong
