"""The loader: takes the words of an image, checks them, and writes them into tables."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..memories import ReadPort, WritePort, add_memory
from ..netlist import Leaf
from .layout import PIECE

__all__ = ["END", "MAGIC", "SETTLE", "Loader"]

#: The first word of an image: its format, and the version.
MAGIC = 0x01494654

#: In place of the number of a table: the words of tables end, and a check follows.
END = 0xFFFF

#: The polynomial of the check, that of Ethernet, the least bit first.
POLYNOMIAL = 0xEDB88320

#: Cycles from the last word of an image to the last write of a table.
SETTLE = 4


class State(enum.IntEnum):
    """What the next word of an image is."""

    MAGIC = 0
    FABRIC = 1
    PROGRAM = 2
    MODES = 3
    TABLE = 4
    FIRST = 5
    END = 6
    DATA = 7
    CHECK = 8
    #: Nothing: the image is there, or refused.
    OVER = 9


class Loader(Leaf):
    """Writes images into tables.

    Parameters
    ----------
    digest : int
        Of the fabric.
    bus : dict of str to int
        As `TableLayout.bus`.
    program, modes : int
        The digest of what is there at first, and of how many modes it is; of none nothing is there.
    written : bool
        Whether anything is ever loaded; else what is there stays, for proofs.

    Members
    -------
    load_we, load_first, load_data : In
        The words of an image, one an edge at the most, the first of them marked.
    busy : In(1)
        Whether a run is under way: then words are dropped.
    loaded : Out(1)
        Whether an image is there whole; a start is refused else.
    loaded_program : Out(32)
        The digest of its program.
    modes : Out
        Of how many modes it is.
    load_valid, load_table, load_row, load_piece, load_word : Out
        What is to be written.
    """

    def __init__(
        self,
        digest: int,
        bus: Mapping[str, int],
        *,
        program: int = 0,
        modes: int = 0,
        written: bool = True,
    ) -> None:
        self._digest, self._initial, self._written = digest, (program, modes), written
        self._bus = bus
        super().__init__(
            {"load_we": In(1), "load_first": In(1), "load_data": In(PIECE), "busy": In(1)}
            | {"loaded": Out(1), "loaded_program": Out(32), "modes": Out(8)}
            | {name: Out(bits) for name, bits in bus.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the steps through an image, and its check."""
        m = Module()
        if not self._written:
            program, modes = self._initial
            m.d.comb += [self.loaded.eq(1), self.loaded_program.eq(program), self.modes.eq(modes)]
            m.d.sync += self.load_word.eq(self.value("load_data"))
            return m
        word, taken = self.value("load_data"), Signal(name="taken")
        m.d.comb += taken.eq(self.value("load_we") & ~self.value("busy"))
        first = self.value("load_first")
        # An image that a reset interrupts is torn.
        state = Signal(State, name="state", init=State.OVER)
        now = Mux(first, Const(State.MAGIC, 4), state)
        table, row, piece = (Signal(self._bus[f"load_{name}"], name=f"next_{name}")
                             for name in ("table", "row", "piece"))  # fmt: skip
        last_piece = Signal(len(piece), name="last_piece")
        end = Signal(len(row) + 1, name="end_of_rows")
        check = Signal(32, name="check", init=(1 << 32) - 1)
        right = Signal(name="right")
        whole: Value = right
        m.d.sync += [self.load_valid.eq(0), right.eq(0)]
        for _ in range(SETTLE - 1):
            later = Signal(name="settles")
            m.d.sync += later.eq(whole & ~(taken & first))
            whole = later
        program, modes = Signal(32, name="program"), Signal(8, name="modes_there")
        begins = taken & first
        self._keep(m, begins | whole, Cat(modes, program, whole & ~begins))
        with m.If(taken):
            before = Mux(first, (1 << 32) - 1, check)
            m.d.sync += [check.eq(_checked(m, before, word)), state.eq(now + 1)]
            with m.Switch(now):
                with m.Case(State.MAGIC):
                    self._expect(m, state, word == MAGIC, State.FABRIC)
                with m.Case(State.FABRIC):
                    self._expect(m, state, word == self._digest, State.PROGRAM)
                with m.Case(State.PROGRAM):
                    m.d.sync += program.eq(word)
                with m.Case(State.MODES):
                    m.d.sync += modes.eq(word)
                with m.Case(State.TABLE):
                    m.d.sync += [table.eq(word), last_piece.eq(word[16:]), piece.eq(0)]
                    with m.If(word[:16] == END):
                        m.d.sync += state.eq(State.CHECK)
                with m.Case(State.FIRST):
                    m.d.sync += row.eq(word)
                with m.Case(State.END):
                    m.d.sync += end.eq(word)
                with m.Case(State.DATA):
                    end_row = piece == last_piece
                    m.d.sync += [
                        self.load_valid.eq(1),
                        self.load_table.eq(table),
                        self.load_row.eq(row),
                        self.load_piece.eq(piece),
                        self.load_word.eq(word),
                        piece.eq(Mux(end_row, 0, piece + 1)),
                        row.eq(row + end_row),
                        state.eq(Mux(end_row & (row + 1 == end), State.TABLE, State.DATA)),
                    ]
                with m.Case(State.CHECK):
                    m.d.sync += [state.eq(State.OVER), right.eq(word == ~check)]
                with m.Default():
                    m.d.sync += state.eq(State.OVER)
        return m

    def _keep(self, m: Module, writes: Value, state: Value) -> None:
        """Keep what is there, in a memory: it has contents at first, and no reset changes it.

        While it is written the other row is read, which says that nothing is there.
        """
        program, modes = self._initial
        there = modes | program << 8 | int(modes > 0) << 40
        cell = memory.MemoryData(shape=41, depth=2, init=[there, 0])
        port = WritePort(Const(0, 1), state, writes)
        kept = add_memory(m, "there", cell, write=port, read=ReadPort(writes, Const(1)), many=True)
        m.d.comb += [
            self.modes.eq(kept[:8]), self.loaded_program.eq(kept[8:40]), self.loaded.eq(kept[40])
        ]  # fmt: skip

    @staticmethod
    def _expect(m: Module, state: Signal, right: Value, then: State) -> None:
        """Go on if a word is the right one; else the image is refused."""
        m.d.sync += state.eq(Mux(right, then, State.OVER))


def _checked(m: Module, check: Value, word: Value) -> Value:
    """The check after one more word: each of its bits is the parity of some of these."""
    rows = [1 << k for k in range(32)]  # bit k depends on these bits of `check` ^ `word`
    for _ in range(32):
        low = rows[0]
        rows = [above ^ (low if POLYNOMIAL >> k & 1 else 0)
                for k, above in enumerate([*rows[1:], 0])]  # fmt: skip
    mixed = Signal(32, name="mixed")
    m.d.comb += mixed.eq(check ^ word)
    return Cat((mixed & row).xor() for row in rows)
