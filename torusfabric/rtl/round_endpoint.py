"""Endpoints of fabrics that work in rounds: memories, readers and writers.

What arrives at an in-port is appended to the bank of that port. A *reader* streams runs of blocks
from the banks into a local lane. Both are told by the sequencer when their cycles have come, so no
flit carries a header or a valid bit.
"""

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program import OWN
from .memories import add_memory, address_width, choose
from .netlist import Leaf

__all__ = ["RoundEndpoint", "runs_of_lane"]


def runs_of_lane(endpoint, messages, lane):
    """What a lane sends in the course of all rounds, each round filled up to its longest message.

    Parameters
    ----------
    endpoint : EndpointProgram
    messages : sequence of int
        Blocks of the longest message of each round.
    lane : int

    Returns
    -------
    list of (list of (bank, slot, length))
        The runs of each round; empty where the lane is idle.
    """
    rounds = []
    for lanes, message in zip(endpoint.send, messages, strict=True):
        runs = [tuple(run) for run in lanes[lane]] if lane < len(lanes) else []
        missing = int(message) - sum(count for _, _, count in runs)
        while runs and missing:
            bank, slot, count = max(runs, key=lambda run: run[2])
            runs.append((bank, slot, min(count, missing)))
            missing -= runs[-1][2]
        rounds.append(runs)
    return rounds


class RoundEndpoint(Leaf):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    endpoint : EndpointProgram
    messages : sequence of int
        Blocks of the longest message of each round.
    viewed : sequence of int
        The banks that the host reads.
    flits : int
        Flits of a block.
    width : int
        Bits of a flit.
    nodes, address_bits, word_bits, reach : int
        Of the whole fabric: nodes, bits of a bank's address and of the word counter, and hops of
        the longest path.
    private : bool
        Whether every node has a read address of its own, instead of one from the host.

    Members
    -------
    round, phase, word, busy : In
        From the sequencer.
    rx : In(ports * width)
        A word from each in-port.
    inject : Out(lanes * width)
        A word for each lane, one cycle after its address is generated.
    write_node, write_address, write_data, write_enable : In
        Writes a word into the send memory of the node whose number is `node`.
    read_node, read_bank, read_address : In
        Reads a word, two cycles later; `read_bank`, given one cycle after the address, chooses the
        bank: an in-port, or the send memory, numbered after those.
    read_data : Out(width)
    node : In
        The number of this node.
    """

    def __init__(
        self,
        *,
        endpoint,
        messages,
        viewed,
        flits,
        width,
        nodes,
        address_bits,
        word_bits,
        reach,
        private=False,
    ):
        self._endpoint, self._messages, self._private = endpoint, messages, private
        self._viewed = sorted({self._bank(bank, len(endpoint.depth) - 1) for bank in viewed})
        self._flits, self._width = flits, width
        ports = len(endpoint.depth) - 1
        self._lanes = max((len(lanes) for lanes in endpoint.send), default=0)
        super().__init__(
            {
                "rx": In(ports * width),
                "round": In(range(max(len(messages), 2))),
                "phase": In(reach + 2),
                "word": In(word_bits),
                "busy": In(1),
                "inject": Out(max(self._lanes, 1) * width),
                "node": In(address_width(nodes)),
                "write_node": In(address_width(nodes)),
                "write_address": In(address_bits),
                "write_data": In(width),
                "write_enable": In(1),
                "read_node": In(address_width(nodes)),
                "read_bank": In(address_width(ports + 1)),
                "read_address": In(address_bits),
                "read_data": Out(width),
            }
        )
        self.read_data = Signal(width, reset_less=True)

    @staticmethod
    def _bank(bank, ports):
        """The number of a bank: the send memory comes after those of the in-ports."""
        return ports if bank == OWN else bank

    def elaborate(self, platform):
        m = Module()
        ports = len(self._endpoint.depth) - 1
        readers = [self._reader(m, lane) for lane in range(self._lanes)]
        words, read = {}, {}
        for bank, depth in enumerate(self._endpoint.depth):
            write = self._store(m, bank) if bank < ports else self._host_write()
            lanes = [lane for lane, reader in enumerate(readers) if bank in reader.banks]
            for lane in lanes:
                shared = bank in self._viewed and lane == lanes[0]
                words[bank, lane] = self._memory(m, bank, readers[lane], write, shared=shared)
            if bank in self._viewed and depth:
                read[bank] = words[bank, lanes[0]] if lanes else self._memory(m, bank, None, write)
        m.d.comb += self.inject.eq(
            Cat(
                *(
                    choose([words[bank, lane] for bank in reader.banks], reader.select)
                    for lane, reader in enumerate(readers)
                )
            )
        )
        if read:
            m.d.sync += self.read_data.eq(self._viewed_word(read))
        return m

    def _viewed_word(self, read):
        """The word of the bank that the host reads."""
        if len(read) == 1:
            return next(iter(read.values()))
        last = read[max(read)]
        banks = [read.get(bank, last) for bank in range(max(read) + 1)]
        return choose(banks, self.value("read_bank"))

    def _memory(self, m, bank, reader, write, *, shared=True):
        """One bank, or a copy of it for a further reader; returns the word read."""
        chosen = self.value("read_node") == self.value("node")
        host = self.value("read_address")
        if reader is None:
            name, read = f"bank_{bank}", (host, chosen)
        else:
            name, address = f"bank_{bank}_lane_{reader.lane}", reader.address
            # The word counter of the sequencer passes on the host's address by itself.
            counted = address is self.value("word") and not self._private
            if shared and not counted:
                address = Mux(self.value("busy"), address, host)
            enable = self.value("busy") | chosen if shared else self.value("busy")
            read = (address, enable)
        depth = self._endpoint.depth[bank] * self._flits
        return add_memory(m, name, width=self._width, depth=depth, write=write, read=read)

    def _host_write(self):
        """The write port of the send memory."""
        chosen = self.value("write_enable") & (self.value("write_node") == self.value("node"))
        return self.value("write_address"), self.value("write_data"), chosen

    def _store(self, m, bank):
        """The write port of an in-port's bank: a pointer, and when it moves."""
        depth = self._endpoint.depth[bank] * self._flits
        if not depth:
            return None
        round_, phase = self.value("round"), self.value("phase")
        receive = [ports[bank] for ports in self._endpoint.receive]
        if len(receive) == 1:
            enable = phase[receive[0] + 1]
        else:
            enable = choose([phase[hops + 1] if hops else Const(0, 1) for hops in receive], round_)
        pointer = Signal(range(max(depth, 2)), name=f"pointer_{bank}")
        if depth > 1:
            with m.If(~self.value("busy")):
                m.d.sync += pointer.eq(0)
            with m.Elif(enable):
                m.d.sync += pointer.eq(pointer + 1)
        return pointer, self.words("rx", self._width)[bank], enable

    def _reader(self, m, lane):
        """The address generator of a lane."""
        rounds = runs_of_lane(self._endpoint, self._messages, lane)
        ports = len(self._endpoint.depth) - 1
        rows = [
            (self._bank(bank, ports), slot * self._flits, count * self._flits - 1)
            for runs in rounds
            for bank, slot, count in runs
        ]
        banks = sorted({bank for bank, _, _ in rows})
        whole = all(len(runs) <= 1 for runs in rounds)
        if whole and len(set(rows)) == 1 and rows[0][1] == 0:
            return Reader(lane, banks, self.value("word"), Const(0, 1))
        return self._generator(m, lane, banks, rows, [bool(runs) for runs in rounds])

    def _generator(self, m, lane, banks, rows, sends):
        """An address generator that steps through runs."""
        starts = [(banks.index(bank), start, left) for bank, start, left in rows]
        widths = [max(max(column).bit_length(), 1) for column in zip(*starts, strict=True)]
        end = max(start + left for _, start, left in starts)
        bank = Signal(widths[0], init=starts[0][0], name=f"bank_{lane}")
        address = Signal(address_width(end + 1), init=starts[0][1], name=f"address_{lane}")
        left = Signal(widths[2], init=starts[0][2], name=f"left_{lane}")
        run = Signal(range(len(rows) + 1), init=1, name=f"run_{lane}")
        select = Signal(len(bank), name=f"select_{lane}")
        active = self.value("phase")[0]
        if not all(sends):
            active = active & choose([Const(int(s), 1) for s in sends], self.value("round"))
        fields = (bank, address, left)
        with m.If(~self.value("busy")):
            m.d.sync += [f.eq(v) for f, v in zip(fields, starts[0], strict=True)]
            m.d.sync += run.eq(1)
        with m.Elif(active):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
            with m.If(left == 0):
                for f, column in zip(fields, zip(*starts, strict=True), strict=True):
                    m.d.sync += f.eq(choose([Const(v, len(f)) for v in column], run))
                m.d.sync += run.eq(run + 1)
        m.d.sync += select.eq(bank)
        return Reader(lane, banks, address, select)


class Reader(NamedTuple):
    """The address generator of a lane: the banks it reads, and when it reads which."""

    lane: int
    banks: list
    address: Value
    select: Value
