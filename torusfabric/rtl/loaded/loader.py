"""The loader: takes the words of an image, checks them, and writes them into tables."""

from __future__ import annotations

import enum

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..netlist import Leaf
from .layout import PIECE
from .table import BUS

__all__ = ["END", "MAGIC", "Loader"]

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
    ROWS = 5
    DATA = 6
    CHECK = 7
    #: Nothing: the image is there, or refused.
    OVER = 8


class Loader(Leaf):
    """Writes images into tables.

    Parameters
    ----------
    digest : int
        Of the fabric.
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
        self, digest: int, *, program: int = 0, modes: int = 0, written: bool = True
    ) -> None:
        self._digest, self._initial, self._written = digest, (program, modes), written
        super().__init__(
            {"load_we": In(1), "load_first": In(1), "load_data": In(PIECE), "busy": In(1)}
            | {"loaded": Out(1), "loaded_program": Out(32), "modes": Out(8)}
            | {name: Out(bits) for name, bits in BUS.items()}
        )
        self.loaded = Signal(init=int(modes > 0), name="loaded", reset_less=True)
        self.loaded_program = Signal(32, init=program, name="loaded_program", reset_less=True)
        self.modes = Signal(8, init=modes, name="modes", reset_less=True)

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
        table, row, piece = (Signal(BUS[f"load_{name}"], name=f"next_{name}")
                             for name in ("table", "row", "piece"))  # fmt: skip
        last_piece, end = Signal(4, name="last_piece"), Signal(16, name="end_of_rows")
        check = Signal(32, name="check", init=(1 << 32) - 1)
        right = Signal(name="right")
        whole: Value = right
        m.d.sync += [self.load_valid.eq(0), right.eq(0)]
        for _ in range(SETTLE - 1):
            later = Signal(name="settles")
            m.d.sync += later.eq(whole & ~(taken & first))
            whole = later
        with m.If(whole):
            m.d.sync += self.loaded.eq(1)
        with m.If(taken):
            before = Mux(first, (1 << 32) - 1, check)
            m.d.sync += [check.eq(_checked(m, before, word)), state.eq(now + 1)]
            with m.Switch(now):
                with m.Case(State.MAGIC):
                    m.d.sync += self.loaded.eq(0)
                    self._expect(m, state, word == MAGIC, State.FABRIC)
                with m.Case(State.FABRIC):
                    self._expect(m, state, word == self._digest, State.PROGRAM)
                with m.Case(State.PROGRAM):
                    m.d.sync += self.loaded_program.eq(word)
                with m.Case(State.MODES):
                    m.d.sync += self.modes.eq(word)
                with m.Case(State.TABLE):
                    m.d.sync += [table.eq(word), last_piece.eq(word[16:]), piece.eq(0)]
                    with m.If(word[:16] == END):
                        m.d.sync += state.eq(State.CHECK)
                with m.Case(State.ROWS):
                    m.d.sync += [row.eq(word[:16]), end.eq(word[16:])]
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
