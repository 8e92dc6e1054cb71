"""A sorter in hardware: a chain of stages, each of which merges pairs of sorted runs.

A *run* is a sorted sequence. Stage k merges runs of 2^k words into runs of 2^(k+1) words. Words
enter and leave in every cycle, so K words are sorted about 2 K cycles after the first has entered.
A stage that is not needed lets all words pass.

The sorter is that of N. Matsumoto, K. Nakano, Y. Ito: Optimal Parallel Hardware K-Sorter and
Top K-Sorter, with FPGA Implementations, ISPDC 2015. Here the number of words may be any.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["STAGE_CYCLES", "MergeStage", "Sorter"]

#: Cycles of a word in a stage that is empty: writing, reading, and the register at its end.
STAGE_CYCLES = 3


class MergeStage(wiring.Component):
    """Stage that merges pairs of runs of the same length.

    The first run of a pair goes into memory a, the second into memory b. Output begins with the
    first word of the second run. Thus the third run finds places in memory a, but for a few words.

    Parameters
    ----------
    bits : int
        Bits of a word.
    run : int
        Words of a run, a power of two.
    depth : int
        Words of each memory, a power of two.

    Members
    -------
    clear : In(1)
        Forgets all words.
    passes : In(1)
        Words pass unchanged, in their order.
    ended : In(1)
        No further words enter, so a run may be shorter, or missing.
    enable : In(1)
        Words may leave.
    in_valid, in_word, out_valid, out_word : In, Out
        The words. They cannot be delayed.
    empty : Out(1)
        High if `ended` is high and all words have left.
    """

    def __init__(self, bits: int, run: int, depth: int) -> None:
        self._bits, self._run, self._depth = bits, run, depth
        super().__init__({
            "clear": In(1), "passes": In(1), "ended": In(1), "enable": In(1, init=1),
            "in_valid": In(1), "in_word": In(bits), "out_valid": Out(1), "out_word": Out(bits),
            "empty": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build both memories, and the comparison of their first words."""
        m, depth, run = Module(), self._depth, self._run
        entered, second = Signal(range(2 * run)), Signal()
        m.d.comb += second.eq(entered[-1] & ~self.passes)
        m.d.sync += entered.eq(entered + self.in_valid)
        words, valid, nothing, takes, done, last = [], [], [], [], [], []
        for number, name in enumerate("ab"):
            m.submodules[name] = memory = Memory(shape=self._bits, depth=depth, init=[])
            read, write = memory.read_port(), memory.write_port()
            # The pointers count twice round, so a full memory differs from an empty one. A word
            # can be read a cycle after it was written.
            written, readable, at, take, finished = (
                Signal(range(2 * depth), name=f"written_{name}"),
                Signal(range(2 * depth), name=f"readable_{name}"),
                Signal(range(2 * depth), name=f"at_{name}"),
                Signal(name=f"take_{name}"), Signal(name=f"done_{name}"))  # fmt: skip
            m.d.comb += [write.addr.eq(written[:-1]), write.data.eq(self.in_word),
                         write.en.eq(self.in_valid & (second == number)),
                         read.addr.eq((at + take)[: len(at) - 1])]  # fmt: skip
            m.d.sync += [written.eq(written + write.en), readable.eq(written), at.eq(at + take)]
            with m.If(self.clear):
                m.d.sync += [written.eq(0), readable.eq(0), at.eq(0)]
            words.append(read.data)
            valid.append(at != readable)
            nothing.append(at == written)
            last.append(take & ((at & (run - 1)) == run - 1))
            takes.append(take)
            done.append(finished)
        a_first = words[0] <= words[1]
        rest = done[1] | (valid[1] & a_first) | (self.ended & nothing[1])
        m.d.comb += [
            takes[0].eq(self.enable & valid[0] & (self.passes | (~done[0] & rest))),
            takes[1].eq(self.enable & valid[1] & ~done[1] & (done[0] | (valid[0] & ~a_first))),
            self.empty.eq(self.ended & nothing[0] & nothing[1] & ~self.out_valid),
        ]
        m.d.sync += [self.out_valid.eq(takes[0] | takes[1]),
                     self.out_word.eq(Mux(takes[0], words[0], words[1]))]  # fmt: skip
        after = Cat(done) | Cat(last)
        m.d.sync += Cat(done).eq(Mux(after.all() | self.clear, 0, after))
        with m.If(self.clear):
            m.d.sync += [entered.eq(0), self.out_valid.eq(0)]
        return m


class Sorter(wiring.Component):
    """Chain of stages that sorts up to 2^stages words.

    Parameters
    ----------
    bits : int
        Bits of a word.
    stages : int
        Number of stages.

    Members
    -------
    clear, ended, in_valid, in_word, out_valid, out_word
        As of a stage.
    passes : In(stages)
        A bit for each stage: words pass unchanged.
    enable : In(1)
        Words may leave the sorter.
    """

    def __init__(self, bits: int, stages: int) -> None:
        self._bits, self._stages = bits, stages
        super().__init__({
            "clear": In(1), "passes": In(stages), "ended": In(1), "enable": In(1),
            "in_valid": In(1), "in_word": In(bits), "out_valid": Out(1), "out_word": Out(bits),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Connect the stages."""
        m = Module()
        valid, word, ended = self.in_valid, self.in_word, self.ended
        for number in range(self._stages):
            # The last stage never receives a third run.
            last, run = number == self._stages - 1, 1 << number
            stage = MergeStage(self._bits, run, max(4, run if last else 2 * run))
            m.submodules[f"stage_{number}"] = stage
            m.d.comb += [stage.clear.eq(self.clear), stage.passes.eq(self.passes[number]),
                         stage.ended.eq(ended), stage.in_valid.eq(valid),
                         stage.in_word.eq(word)]  # fmt: skip
            if last:
                m.d.comb += stage.enable.eq(self.enable)
            valid, word, ended = stage.out_valid, stage.out_word, stage.empty
        m.d.comb += [self.out_valid.eq(valid), self.out_word.eq(word)]
        return m
