"""The loader: takes the words of an image, checks them, and writes them into tables."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Member, Out

from ...rtl.crc import CRC_BITS, ONES, crc_masks
from ...rtl.memories import ReadPort, WritePort, add_memory, address_width, constant_at
from ...rtl.netlist import Leaf
from ...topology import IntArray
from .layout import PIECE

__all__ = ["END", "EVERY", "MAGIC", "PIECE_AT", "ROWS_AT", "SETTLED", "WORDS", "ImageLoader"]

#: The first word of an image: its format, and the version.
MAGIC = 0x02494654

#: In place of the number of a table: the words of tables end, and a check follows.
END = 0xFFFF

#: In place of it: of all nodes.
EVERY = 0xFFFE

#: Where a word that begins a run of rows has its piece, and its last row less the first.
PIECE_AT, ROWS_AT = 16, 22

#: Cycles from the last word of an image to the last write of a table.
SETTLE = 4

#: And until it is known whether the image is there.
SETTLED = SETTLE + 2

#: The output that distinguishes images, and its bits: the last ones of their checks.
IMAGE, IMAGE_BITS = "image", 16

#: How it is given the words of an image, and the bits of each.
WORDS = {"load_we": 1, "load_first": 1, "load_data": PIECE}


class State(enum.IntEnum):
    """What the next word of an image is."""

    MAGIC = 0
    FABRIC = 1
    PROGRAM = 2
    MODES = 3
    BASE = 4
    TABLE = 5
    FIRST = 6
    DATA = 7
    CHECK = 8
    #: Nothing: the image is there, or refused.
    OVER = 9


class ImageLoader(Leaf):
    """Writes images into tables.

    An image that is based on what is there fills some modes, while others may run. One that is
    based on nothing empties all.

    Parameters
    ----------
    digest : int
        Of the fabric.
    bus : dict of str to int
        As `TableLayout.bus`.
    entries : int
        For how many entries of modes there is room.
    there : tuple of int
        What is there at first: a bit for each entry of a mode that may run, the digest of the
        program, and the last word of the image; 0 if nothing is.
    written : bool
        Whether anything is ever loaded; else what is there stays, for proofs.
    waits : bool
        True if images are refused until nodes have passed on what runs have brought.
    blocks : ndarray of int, shape (blocks, nodes), optional
        The nodes of each block, where one of several is built. Images are then refused while
        `busy`, and other blocks have to know which image is there.

    Members
    -------
    load_we, load_first, load_data : In
        The words of an image, one an edge at the most, the first of them marked.
    busy, last_entry : In
        Whether a run is under way, and its entry: an image that fills that one is refused.
    all_rest : In(1)
        Whether nodes have passed on what runs have brought.
    loaded : Out(1)
        Whether an image is there whole.
    loaded_program : Out(32)
        The digest of its program; 0 if none is.
    image : Out
        A number of the image, 0 if none is there whole; only with `blocks`.
    block, numbers : In, Out
        The number of the block; those of the tables of its nodes, side by side.
    entries : Out
        A bit for each entry of a mode that is there; a start that finds another is refused.
    load_valid, load_every, load_table, load_row, load_piece, load_word : Out
        What is to be written.
    """

    def __init__(
        self,
        digest: int,
        bus: Mapping[str, int],
        entries: int,
        there: tuple[int, int, int],
        *,
        written: bool = True,
        waits: bool = False,
        blocks: IntArray | None = None,
    ) -> None:
        self.blocks = blocks
        self._digest, self._initial, self._written = digest, there, written
        self._bus = bus
        super().__init__(
            {name: In(bits) for name, bits in WORDS.items()}
            | {"busy": In(1), "last_entry": In(address_width(entries)), "all_rest": In(int(waits))}
            | {"loaded": Out(1), "loaded_program": Out(32), "entries": Out(entries)}
            | {name: Out(bits) for name, bits in bus.items()}
            | ({} if blocks is None else self._of_blocks(blocks))
        )

    def _of_blocks(self, blocks: IntArray) -> dict[str, Member]:
        """Return the members of one of several blocks."""
        number, nodes = blocks.shape
        return {
            IMAGE: Out(IMAGE_BITS),
            "block": In(address_width(number)),
            "numbers": Out(nodes * self._bus["load_table"]),
        }

    def elaborate(self, platform: object) -> Module:
        """Build the steps through an image, and its check; a wrong word refuses it."""
        m = Module()
        if self.blocks is not None:
            for k, numbers in enumerate(self.blocks.T.tolist()):
                number = constant_at(numbers, self.value("block"))
                m.d.comb += self.numbers.word_select(k, self._bus["load_table"]).eq(number)
        if not self._written:
            entries, program, _ = self._initial
            m.d.comb += [self.loaded_program.eq(program), self.entries.eq(entries)]
            m.d.comb += self.loaded.eq(1)
            m.d.sync += self.load_word.eq(self.value("load_data"))
            return m
        taken, first, word = (self.value(f"load_{name}") for name in ("we", "first", "data"))
        # An image that a reset interrupts is torn.
        state = Signal(State, name="state", init=State.OVER)
        check = Signal(CRC_BITS, name="check", init=ONES)
        right, begins = Signal(name="right"), Signal(name="begins")
        whole: Value = right
        m.d.sync += [self.load_valid.eq(0), right.eq(0)]
        for _ in range(SETTLE - 1):
            later = Signal(name="settles")
            m.d.sync += later.eq(whole & ~(taken & first))
            whole = later
        program, image = Signal(32, name="program"), Signal(32, name="last_word")
        count = -(-len(self.entries) // PIECE)
        fills, alone = Signal(count * PIECE, name="fills"), Signal(name="alone")
        fill = Signal(range(max(count, 2)), name="fill")
        bare = word == 0
        left = Mux(whole, self.entries | fills, Mux(bare, 0, self.entries & ~fills))
        left = left[: len(self.entries)]
        base = self._keep(m, begins | whole, left, Mux(whole, Cat(whole, program, image), 0))
        runs = self.value("busy") & fills.bit_select(self.value("last_entry"), 1)
        # A run may have begun while its mode was still there.
        stops = runs | (self.value("busy") & alone) if self.blocks is None else self.value("busy")
        stopped = (state >= State.TABLE) & stops
        now = Mux(first, Const(State.MAGIC, 4), Mux(stopped, State.OVER, state))
        with m.If(taken):
            before = Mux(first, ONES, check)
            m.d.sync += [check.eq(_checked(m, before, word)), state.eq(now + 1)]
            with m.Switch(now):
                for begins_with, known in ((State.MAGIC, MAGIC), (State.FABRIC, self._digest)):
                    with m.Case(begins_with), m.If(word != known):
                        m.d.sync += state.eq(State.OVER)
                with m.Case(State.PROGRAM):
                    m.d.sync += [program.eq(word), fill.eq(0)]
                with m.Case(State.MODES):
                    m.d.sync += [fills.eq(Cat(fills[PIECE:], word)), fill.eq(fill + 1)]
                    with m.If(fill != count - 1):
                        m.d.sync += state.eq(State.MODES)
                with m.Case(State.BASE):
                    idle = Mux(bare, ~self.value("busy"), (word == base) & ~runs)
                    if "all_rest" in self.signature.members:
                        idle &= self.value("all_rest")
                    if self.blocks is not None:
                        idle = (bare | (word == base)) & ~self.value("busy")
                    m.d.comb += begins.eq(idle)
                    m.d.sync += [alone.eq(bare), state.eq(Mux(idle, State.TABLE, State.OVER))]
                self._take_table(m, state, word)
                with m.Case(State.CHECK):
                    m.d.sync += [state.eq(State.OVER), image.eq(word), right.eq(word == ~check)]
                with m.Default():
                    m.d.sync += state.eq(State.OVER)
        return m

    def _take_table(self, m: Module, state: Signal, word: Value) -> None:
        """Take the words of a run of rows: which piece of which table, and what they hold."""
        bits, rows = self._bus, len(range(ROWS_AT, PIECE))
        row, left = Signal(bits["load_row"], name="next_row"), Signal(rows, name="rows_left")
        with m.Case(State.TABLE):
            m.d.sync += [
                self.load_table.eq(word),
                self.load_every.eq(word[:PIECE_AT] == EVERY),
                self.load_piece.eq(word[PIECE_AT:ROWS_AT]),
                left.eq(word[ROWS_AT:]),
            ]
            with m.If(word[:PIECE_AT] == END):
                m.d.sync += state.eq(State.CHECK)
        with m.Case(State.FIRST):
            m.d.sync += row.eq(word)
        with m.Case(State.DATA):
            m.d.sync += [
                self.load_valid.eq(1),
                self.load_row.eq(row),
                self.load_word.eq(word),
                row.eq(row + 1),
                left.eq(left - 1),
                state.eq(Mux(left == 0, State.TABLE, State.DATA)),
            ]

    def _keep(self, m: Module, writes: Value, entries: Value, rest: Value) -> Value:
        """Keep what is there, in a memory: it has contents at first, and no reset changes it.

        Until that is written, what was there before is shown. The result is the last word of the
        image that is there; 0 if none is whole.
        """
        (there, program, check), bits = self._initial, len(self.entries)
        init = there | (int(there > 0) | program << 1 | check << 33) << bits
        cell = memory.MemoryData(shape=bits + 65, depth=2, init=[init, 0])
        port = WritePort(Const(0, 1), Cat(entries, rest), writes)
        kept = add_memory(m, "there", cell, write=port, read=ReadPort(Const(0, 1), ~writes),
                          many=True)  # fmt: skip
        m.d.comb += [
            self.entries.eq(kept[:bits]), self.loaded.eq(kept[bits]),
            self.loaded_program.eq(kept[bits + 1 : bits + 33]),
        ]  # fmt: skip
        if self.blocks is not None:
            m.d.comb += getattr(self, IMAGE).eq(kept[bits + 33 :])
        return kept[bits + 33 :]


def _checked(m: Module, check: Value, word: Value) -> Value:
    """The check after one more word: each bit is the parity of some of both."""
    mixed = Signal(CRC_BITS, name="mixed")
    m.d.comb += mixed.eq(check ^ word)
    # On a bit of a word as wide as the sum, it depends as on that of the sum before.
    return Cat((mixed & (mask & ONES)).xor() for mask in crc_masks(CRC_BITS))
