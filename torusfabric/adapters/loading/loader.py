"""The loader: hardware that takes the words of an image, checks them, and writes them into tables.

The format of an image is described in `torusfabric.adapters.loading.image`. A *full* image replaces
all modes; a *partial* image fills some modes, and can be loaded only after one particular image,
its *base*. An *entry* is one form of a mode, for one root if runs choose the root. An *owner* is a
node, or one of the tables that exist once in a fabric. A *piece* is a range of columns of a table,
at most 32 bits wide.

`ImageLoader` steps through one `LoaderState` for each part of an image. It keeps the *loaded
state*: a mask of the entries that may run, the digest of the program, and the last word of the
image.

Rows are written as they arrive, before the CRC is known. So before the first row, the loader
removes the entries that the image fills from the mask (for a full image all entries). It adds them
after a correct CRC. After an incomplete or wrong image they stay removed, so that no run uses its
rows.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Member, Out

from ...rtl.crc import CRC_BITS, INITIAL_CRC, crc_masks
from ...rtl.memories import ReadPort, WritePort, add_memory, address_width, constant_at
from ...rtl.netlist import Leaf
from ...topology import IntArray
from .layout import PIECE_BITS

__all__ = ["END_MARK", "ALL_NODES", "MAGIC", "PIECE_AT", "ROWS_AT", "LOADED_CYCLES", "LOAD_INPUTS",
           "ImageLoader"]  # fmt: skip

#: The first word of an image: its format, and the version.
MAGIC = 0x02494654

#: The word that follows the last run of rows, in place of a header; then the CRC follows.
END_MARK = 0xFFFF

#: The owner in the header of a run of rows that is written into the tables of all nodes.
ALL_NODES = 0xFFFE

#: Lowest bits of the fields of a header: number of the piece, and number of rows less one.
PIECE_AT, ROWS_AT = 16, 22

#: Cycles from the last word of an image to the last write of a table.
TABLE_WRITE_CYCLES = 4

#: Cycles from the last word of an image until the output `loaded` is valid.
LOADED_CYCLES = TABLE_WRITE_CYCLES + 2

#: The output that distinguishes images, and its width: the lowest bits of the CRC.
IMAGE_OUTPUT, IMAGE_BITS = "image", 16

#: The inputs that take the words of an image, with their bits.
LOAD_INPUTS = {"load_we": 1, "load_first": 1, "load_data": PIECE_BITS}


class LoaderState(enum.IntEnum):
    """The part of an image to which the next word belongs, or OVER if it belongs to none."""

    MAGIC = 0
    FABRIC = 1
    PROGRAM = 2
    MODES = 3
    BASE = 4
    TABLE = 5
    FIRST = 6
    DATA = 7
    CHECK = 8
    #: No part: an image has ended or was refused. Words are ignored up to the next first word.
    OVER = 9


class ImageLoader(Leaf):
    """Hardware that checks the words of images and writes them into tables.

    An *entry* is one form of a mode, for one root if runs choose the root. A mask says which
    entries may run. A partial image names another image, its *base*, and is accepted only if the
    base is loaded. A partial image fills some modes, while others may run. A full image is accepted
    only while no run is under way; it removes all entries from the mask, also those that it does
    not fill.

    Parameters
    ----------
    digest : int
        Digest of the fabric, with which word 1 of an image is compared.
    bus : dict of str to int
        Names and bits of the signals to the tables: `TableLayout.bus_signals`.
    entries : int
        Number of entries in the room.
    there : tuple of int
        The loaded state at power-up: the mask of the entries that may run, the digest of the
        program, and the last word of the image. All are 0 if nothing is loaded.
    written : bool
        False for proofs, in which the loaded state is constant and no image is taken.
    waits : bool
        True with streams: an image is then refused unless all nodes have sent the results of all
        runs to the user.
    blocks : ndarray of int, shape (boards, nodes of a board), optional
        The nodes of each board, if the loader is that of one board of several. Every image is then
        refused while `busy`, and the output `image` tells the other boards which image is loaded.

    Members
    -------
    load_we, load_first, load_data : In
        A word of an image is taken in each cycle with `load_we`; `load_first` marks the first word.
    busy, last_entry : In
        `busy` is high while a run is under way; `last_entry` is the entry of the last run. An image
        that fills the entry of a run under way is refused.
    all_rest : In(1)
        High if all nodes have sent the results of all runs to the user; only with `waits`.
    loaded : Out(1)
        High if an image is loaded completely.
    loaded_program : Out(32)
        Digest of the loaded program; 0 if no image is loaded completely.
    image : Out
        Lowest bits of the CRC of the loaded image, 0 if none is complete; only with `blocks`.
    block : In
        Number of this board; only with `blocks`.
    numbers : Out
        Numbers of this board's nodes, by which the bus addresses their tables, concatenated; only
        with `blocks`.
    entries : Out
        Mask of the entries that may run. A start of an entry outside the mask is refused.
    load_valid, load_every, load_table, load_row, load_piece, load_word : Out
        The bus on which one row of one piece is written: see `TableLayout.bus_signals`.
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
            {name: In(bits) for name, bits in LOAD_INPUTS.items()}
            | {"busy": In(1), "last_entry": In(address_width(entries)), "all_rest": In(int(waits))}
            | {"loaded": Out(1), "loaded_program": Out(32), "entries": Out(entries)}
            | {name: Out(bits) for name, bits in bus.items()}
            | ({} if blocks is None else self._block_members(blocks))
        )

    def _block_members(self, blocks: IntArray) -> dict[str, Member]:
        """Return the further inputs and outputs of the loader of one board of several, by name.

        They are `block`, `numbers` and `image`. `blocks` are the nodes of each board.
        """
        number, nodes = blocks.shape
        return {
            IMAGE_OUTPUT: Out(IMAGE_BITS),
            "block": In(address_width(number)),
            "numbers": Out(nodes * self._bus["load_table"]),
        }

    def elaborate(self, platform: object) -> Module:
        """Build the state machine over the parts of an image, and the CRC.

        Any wrong word leads to `LoaderState.OVER`.
        """
        m = Module()
        if self.blocks is not None:
            for k, numbers in enumerate(self.blocks.T.tolist()):
                number = constant_at(numbers, self.input_value("block"))
                m.d.comb += self.numbers.word_select(k, self._bus["load_table"]).eq(number)
        if not self._written:
            entries, program, _ = self._initial
            m.d.comb += [self.loaded_program.eq(program), self.entries.eq(entries)]
            m.d.comb += self.loaded.eq(1)
            m.d.sync += self.load_word.eq(self.input_value("load_data"))
            return m
        taken, first, word = (self.input_value(f"load_{name}") for name in ("we", "first", "data"))
        # State OVER after a reset: the remaining words of an interrupted image are ignored.
        state = Signal(LoaderState, name="state", init=LoaderState.OVER)
        check = Signal(CRC_BITS, name="check", init=INITIAL_CRC)
        right, begins = Signal(name="right"), Signal(name="begins")
        whole: Value = right
        m.d.sync += [self.load_valid.eq(0), right.eq(0)]
        for _ in range(TABLE_WRITE_CYCLES - 1):
            later = Signal(name="settles")
            m.d.sync += later.eq(whole & ~(taken & first))
            whole = later
        program, image = Signal(32, name="program"), Signal(32, name="last_word")
        count = -(-len(self.entries) // PIECE_BITS)
        fills, alone = Signal(count * PIECE_BITS, name="fills"), Signal(name="alone")
        fill = Signal(range(max(count, 2)), name="fill")
        bare = word == 0
        left = Mux(whole, self.entries | fills, Mux(bare, 0, self.entries & ~fills))
        left = left[: len(self.entries)]
        base = self._add_state_register(
            m, begins | whole, left, Mux(whole, Cat(whole, program, image), 0)
        )
        runs = self.input_value("busy") & fills.bit_select(self.input_value("last_entry"), 1)
        # A run may have been accepted just before the mask was changed: the rest of the image is
        # then ignored.
        stops = (
            runs | (self.input_value("busy") & alone)
            if self.blocks is None
            else self.input_value("busy")
        )
        stopped = (state >= LoaderState.TABLE) & stops
        now = Mux(first, Const(LoaderState.MAGIC, 4), Mux(stopped, LoaderState.OVER, state))
        with m.If(taken):
            before = Mux(first, INITIAL_CRC, check)
            m.d.sync += [check.eq(_next_crc(m, before, word)), state.eq(now + 1)]
            with m.Switch(now):
                for begins_with, known in (
                    (LoaderState.MAGIC, MAGIC),
                    (LoaderState.FABRIC, self._digest),
                ):
                    with m.Case(begins_with), m.If(word != known):
                        m.d.sync += state.eq(LoaderState.OVER)
                with m.Case(LoaderState.PROGRAM):
                    m.d.sync += [program.eq(word), fill.eq(0)]
                with m.Case(LoaderState.MODES):
                    m.d.sync += [fills.eq(Cat(fills[PIECE_BITS:], word)), fill.eq(fill + 1)]
                    with m.If(fill != count - 1):
                        m.d.sync += state.eq(LoaderState.MODES)
                with m.Case(LoaderState.BASE):
                    idle = Mux(bare, ~self.input_value("busy"), (word == base) & ~runs)
                    if "all_rest" in self.signature.members:
                        idle &= self.input_value("all_rest")
                    if self.blocks is not None:
                        idle = (bare | (word == base)) & ~self.input_value("busy")
                    m.d.comb += begins.eq(idle)
                    m.d.sync += [
                        alone.eq(bare),
                        state.eq(Mux(idle, LoaderState.TABLE, LoaderState.OVER)),
                    ]
                self._take_row_run(m, state, word)
                with m.Case(LoaderState.CHECK):
                    m.d.sync += [
                        state.eq(LoaderState.OVER),
                        image.eq(word),
                        right.eq(word == ~check),
                    ]
                with m.Default():
                    m.d.sync += state.eq(LoaderState.OVER)
        return m

    def _take_row_run(self, m: Module, state: Signal, word: Value) -> None:
        """Add the states that take a run of rows: header, number of the first row, and data.

        A run of rows is a part of an image. A data word is on the bus to the tables in the cycle
        after the loader has taken the word.
        """
        bits, rows = self._bus, len(range(ROWS_AT, PIECE_BITS))
        row, left = Signal(bits["load_row"], name="next_row"), Signal(rows, name="rows_left")
        with m.Case(LoaderState.TABLE):
            m.d.sync += [
                self.load_table.eq(word),
                self.load_every.eq(word[:PIECE_AT] == ALL_NODES),
                self.load_piece.eq(word[PIECE_AT:ROWS_AT]),
                left.eq(word[ROWS_AT:]),
            ]
            with m.If(word[:PIECE_AT] == END_MARK):
                m.d.sync += state.eq(LoaderState.CHECK)
        with m.Case(LoaderState.FIRST):
            m.d.sync += row.eq(word)
        with m.Case(LoaderState.DATA):
            m.d.sync += [
                self.load_valid.eq(1),
                self.load_row.eq(row),
                self.load_word.eq(word),
                row.eq(row + 1),
                left.eq(left - 1),
                state.eq(Mux(left == 0, LoaderState.TABLE, LoaderState.DATA)),
            ]

    def _add_state_register(self, m: Module, writes: Value, entries: Value, rest: Value) -> Value:
        """Add the register that says which image is loaded, and drive the outputs from it.

        It has the mask of the entries that may run, the digest of the program, and the last word of
        the image. (An entry is one form of a mode, for one root.) The register is row 0 of a memory
        of two rows. Why a memory: it has initial contents, and a reset does not change it. The read
        port is disabled in the cycle of a write, so that the outputs keep the old state in this
        cycle.

        Parameters
        ----------
        writes : Value
            Write enable.
        entries : Value
            The new mask of entries.
        rest : Value
            The other bits of the new state: 1 bit that is high if an image is complete, 32 bits for
            the digest of the program, and 32 bits for the last word of the image.

        Returns
        -------
        Value
            Last word of the loaded image; 0 if no image is loaded completely.
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
            m.d.comb += getattr(self, IMAGE_OUTPUT).eq(kept[bits + 33 :])
        return kept[bits + 33 :]


def _next_crc(m: Module, check: Value, word: Value) -> Value:
    """Return the CRC after one more word, where `check` is the CRC before it.

    Each bit is a parity of bits of the old CRC and of the word.
    """
    mixed = Signal(CRC_BITS, name="mixed")
    m.d.comb += mixed.eq(check ^ word)
    # The word is as wide as the CRC, so it can be added to the CRC first: one mask serves both.
    return Cat((mixed & (mask & INITIAL_CRC)).xor() for mask in crc_masks(CRC_BITS))
