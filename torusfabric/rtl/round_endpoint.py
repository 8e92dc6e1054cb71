"""Endpoints of fabrics that work in rounds: memories, readers and writers.

What arrives at an in-port is appended to the bank of that port. A *reader* streams runs of blocks
from the banks into a local lane; readers that never read a bank at once share its read port. All
are told by the sequencer when their cycles have come, so no flit carries a header or a valid bit.
"""

from typing import NamedTuple

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program import NEUTRAL, OWN, sharing
from .combiner import operate
from .crossbar import cascade, keeper, select_bits
from .memories import add_memory, address_width, choose
from .netlist import Leaf

__all__ = ["RoundEndpoint"]


class RoundEndpoint(Leaf):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    endpoint : EndpointProgram
    lengths : sequence of (sequence of int)
        The lengths of the messages of each round, in blocks.
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
    operator : Operator, optional
        How the words of the readers of a lane are combined.

    Members
    -------
    round, phase, word, busy : In
        From the sequencer; a phase for each length.
    rx : In(ports * width)
        A word from each in-port.
    inject : Out(lanes * width)
        A word for each lane, one cycle after its address is generated.
    write_node, write_address, write_data, write_enable : In
        Writes a word into the send memory of the node whose number is `node`.
    read_node, read_bank, read_address : In
        Reads a word, two cycles later. `read_bank`, given with the address, or one cycle later
        where private, chooses the bank: an in-port, or the send memory, numbered after those.
    read_data : Out(width)
    node : In
        The number of this node.
    """

    def __init__(
        self,
        *,
        endpoint,
        lengths,
        viewed,
        flits,
        width,
        nodes,
        address_bits,
        word_bits,
        reach,
        private=False,
        operator=None,
    ):
        self._operator = operator
        self._endpoint, self._lengths, self._private = endpoint, lengths, private
        self._viewed = sorted({self._bank(bank, len(endpoint.depth) - 1) for bank in viewed})
        self._flits, self._width = flits, width
        ports = len(endpoint.depth) - 1
        self._readers = max((len(readers) for readers in endpoint.send), default=0)
        self._groups = endpoint.groups or [(reader,) for reader in range(self._readers)]
        self._lanes = len(self._groups)
        self._reach, windows = reach, max(map(len, lengths))
        super().__init__(
            {
                "rx": In(ports * width),
                "round": In(range(max(len(lengths), 2))),
                "phase": In(windows * (reach + 2)),
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
        """The number of a bank: the send memory comes after those of the in-ports, then nothing."""
        return {OWN: ports, NEUTRAL: ports + 1}.get(bank, bank)

    def elaborate(self, platform):
        m = Module()
        ports = len(self._endpoint.depth) - 1
        readers = [self._reader(m, number) for number in range(self._readers)]
        words: dict[tuple[int, int], Value] = {}
        read: dict[int, Value] = {}
        for bank, depth in enumerate(self._endpoint.depth):
            write = self._store(m, bank) if bank < ports else self._host_write()
            groups = sharing(self._endpoint.send, OWN if bank == ports else bank)
            for number, lanes in enumerate(groups or [[]] * (bank in self._viewed)):
                reading = [readers[lane] for lane in lanes]
                viewed = bank in self._viewed and not number
                if depth:
                    word = self._memory(m, bank, reading, write, viewed=viewed)
                    words |= {(bank, lane): word for lane in lanes}
                    read |= {bank: word} if viewed else {}
        if self._operator:
            neutral = Const(self._operator.identity(self._width), self._width)
            words |= {(ports + 1, reader.lane): neutral for reader in readers}
        able = [reader.lane for reader in readers if read and {*read} <= {*reader.banks}]
        host = able[0] if able else None
        taken = []
        for reader in readers:
            select = self._select(m, reader, for_host=reader.lane == host)
            inputs = [words[bank, reader.lane] for bank in reader.banks]
            taken.append(self._cascade(m, inputs, select))
        for lane, group in enumerate(self._groups):
            m.d.comb += self.inject.word_select(lane, self._width).eq(self._combined(taken, group))
        if host is not None:
            m.d.sync += self.read_data.eq(taken[host])
        elif read:
            m.d.sync += self.read_data.eq(self._viewed_word(m, read))
        return m

    def _combined(self, words, group):
        """What the readers of a lane read, combined in a tree."""
        row = [words[reader] for reader in group]
        while len(row) > 1:
            pairs = zip(row[::2], row[1::2], strict=False)
            row = [operate(self._operator, a, b, self._width) for a, b in pairs] + (
                row[-1:] if len(row) % 2 else []
            )
        return row[0]

    def _select(self, m, reader, *, for_host):
        """The select bits of a lane, which may also serve the host."""
        if len(reader.banks) == 1:
            return Const(0, 1)
        busy, select = self.value("busy"), Signal(len(reader.code), name=f"select_{reader.lane}")
        m.d.sync += select.eq(reader.code)
        if for_host:
            host = self._host_select(reader.banks)
            if self._private:
                return Mux(busy, select, host)
            m.d.sync += select.eq(Mux(busy, reader.code, host))
        return select

    def _host_select(self, banks):
        """The select bits with which a lane passes on the bank that the host reads."""
        last = banks[-1]
        codes = [_code(banks, bank if bank in banks else last) for bank in range(last + 1)]
        width = max(_code_width(banks), 1)
        return choose([Const(code, width) for code in codes], self.value("read_bank"))

    def _cascade(self, m, words, select):
        """One of several words."""
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(m, self._width)] if self.alone else []
        return cascade(words, list(select), self._width, *keep)

    def _viewed_word(self, m, read):
        """The word of the bank that the host reads."""
        banks = sorted(read)
        if len(banks) == 1:
            return read[banks[0]]
        select = self._host_select(banks)
        if not self._private:
            # From a register: else synthesis would work out for every bit what to select.
            early, select = select, Signal(len(select), name="select_host")
            m.d.sync += select.eq(early)
        return self._cascade(m, [read[bank] for bank in banks], select)

    def _memory(self, m, bank, readers, write, *, viewed):
        """A bank, or a copy of it for some readers; returns the word read."""
        chosen = self.value("read_node") == self.value("node")
        host, busy = self.value("read_address"), self.value("busy")
        depth = self._endpoint.depth[bank] * self._flits
        name = f"bank_{bank}"
        if readers:
            name += f"_lane_{readers[0].lane}"
        if not readers:
            read = (host, chosen)
        else:
            address = readers[-1].address
            for reader in readers[:-1]:
                address = Mux(reader.reads(bank), reader.address, address)
            # The word counter of the sequencer passes on the host's address by itself.
            counted = address is self.value("word") and not self._private
            if viewed and not counted:
                address = Mux(busy, address, host)
            read = (address, busy | chosen if viewed else busy)
        return add_memory(m, name, width=self._width, depth=depth, write=write, read=read)

    def _host_write(self):
        """The write port of the send memory."""
        chosen = self.value("write_enable") & (self.value("write_node") == self.value("node"))
        return self.value("write_address"), self.value("write_data"), chosen

    def _phases(self, number, length):
        """The phase of the messages of a length in a round."""
        window = self._lengths[number].index(length)
        return self.words("phase", self._reach + 2)[window]

    def _in_round(self, values):
        """A bit that depends on the round; equal ones are not chosen from."""
        if all(value is values[0] for value in values):
            return values[0]
        return choose(values, self.value("round"))

    def _store(self, m, bank):
        """The write port of an in-port's bank: a pointer, and when it moves."""
        depth = self._endpoint.depth[bank] * self._flits
        if not depth:
            return None
        enable = self._in_round(
            [
                self._phases(number, row[bank].length)[row[bank].hops + 1]
                if row[bank].length
                else NEVER
                for number, row in enumerate(self._endpoint.receive)
            ]
        )
        pointer = Signal(range(max(depth, 2)), name=f"pointer_{bank}")
        if depth > 1:
            with m.If(~self.value("busy")):
                m.d.sync += pointer.eq(0)
            with m.Elif(enable):
                m.d.sync += pointer.eq(pointer + 1)
        return pointer, self._arriving(bank), enable

    def _arriving(self, bank):
        """What is written into an in-port's bank: what arrives, or what the node makes itself."""
        word = self.words("rx", self._width)[bank]
        made = [row[bank].length > 0 and not row[bank].hops for row in self._endpoint.receive]
        if not any(made):
            return word
        own = self.inject[: self._width]
        others = any(row[bank].hops for row in self._endpoint.receive)
        last = self.value("round") == made.index(True)
        return Mux(last, own, word) if others else own

    def _reader(self, m, lane):
        """The address generator of a lane."""
        rounds = [lanes[lane] if lane < len(lanes) else () for lanes in self._endpoint.send]
        ports = len(self._endpoint.depth) - 1
        rows = [
            (self._bank(run.bank, ports), run.slot * self._flits, run.length * self._flits - 1)
            for runs in rounds
            for run in runs
        ]
        banks = sorted({bank for bank, _, _ in rows})
        sends = [Const(1 if runs else 0, 1) for runs in rounds]
        sending = Const(1) if all(rounds) else choose(sends, self.value("round"))
        whole = all(len(runs) <= 1 for runs in rounds)
        if whole and len({(bank, slot) for bank, slot, _ in rows}) == 1 and rows[0][1] == 0:
            return Reader(lane, banks, self.value("word"), Const(0, 1), sending)
        return self._generator(m, lane, banks, rows, rounds, sending)

    def _generator(self, m, lane, banks, rows, rounds, sending):
        """An address generator that steps through runs."""
        starts = [(_code(banks, bank), start, left) for bank, start, left in rows]
        end = max(start + left for _, start, left in starts)
        widths = max(_code_width(banks), 1), address_width(end + 1), max(s[2] for s in starts)
        code = Signal(widths[0], init=starts[0][0], name=f"bank_{lane}")
        address = Signal(widths[1], init=starts[0][1], name=f"address_{lane}")
        left = Signal(range(max(widths[2] + 1, 2)), init=starts[0][2], name=f"left_{lane}")
        run = Signal(range(max(len(rows) + 1, 2)), init=1, name=f"run_{lane}")
        active = self._in_round(
            [
                self._phases(number, sum(run.length for run in runs))[0] if runs else NEVER
                for number, runs in enumerate(rounds)
            ]
        )
        fields = (code, address, left)
        with m.If(~self.value("busy")):
            m.d.sync += [f.eq(v) for f, v in zip(fields, starts[0], strict=True)]
            m.d.sync += run.eq(1)
        with m.Elif(active):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
            with m.If(left == 0):
                for f, column in zip(fields, zip(*starts, strict=True), strict=True):
                    m.d.sync += f.eq(choose([Const(v, len(f)) for v in column], run))
                m.d.sync += run.eq(run + 1)
        return Reader(lane, banks, address, code, sending)


#: Never high.
NEVER = Const(0, 1)


def _code(banks, bank):
    """The select bits, as a number, with which a cascade over banks passes on one of them."""
    return sum(bit << k for k, bit in enumerate(select_bits(len(banks), banks.index(bank))))


def _code_width(banks):
    return len(select_bits(len(banks), 0))


class Reader(NamedTuple):
    """The address generator of a lane: the banks it reads, and when it reads which.

    Parameters
    ----------
    lane : int
    banks : list of int
    address : Value
    code : Value
        Select bits of the bank that is read, at the time of the address.
    sending : Value
        Whether the lane sends anything in this round.
    """

    lane: int
    banks: list
    address: Value
    code: Value
    sending: Value

    def reads(self, bank):
        """Whether the address is for a bank."""
        if bank not in self.banks:
            return Const(0, 1)
        if len(self.banks) == 1:
            return self.sending
        return self.sending & (self.code == _code(self.banks, bank))
