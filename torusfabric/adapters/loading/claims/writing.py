"""Claims about loading: the loader follows the format of images, and tables store its words.

An *image* is a sequence of words, which the *loader* checks and writes into tables. An *owner* is a
node, or one of the tables that exist once in a fabric; a *piece* is a range of columns of a table.
A *harness* is Verilog around a module, with the claims about it.

The loader is compared with the *reader*, a model of the format in the harness. With each word the
reader advances to the next part of the image (see `torusfabric.adapters.loading.image`).

A table is proved for one read address, which is an arbitrary constant, so for all. The claim is
that each output bit keeps its value until the loader writes the row at this address, and then takes
its bit of the written word. Tables whose Verilog differs only in initial contents are proved once.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....contract.claims import Claim
from ....proof.model import HarnessBuilder, earlier_value
from ....proof.report import make_refutation
from ....proof.wiring import Wires, control_tree_inputs, planned_wires
from ....rtl.crc import CRC_BITS, INITIAL_CRC
from ....rtl.memories import address_width
from ....rtl.netlist import Role
from ..contents import UNUSED_ROW
from ..image import FILL_MASK_INDEX
from ..layout import PIECE_BITS, split_into_pieces
from ..loader import ALL_NODES, END_MARK, MAGIC, PIECE_AT, ROWS_AT

if TYPE_CHECKING:
    from ....proof.gates import Bit, GateText
    from ....proof.solver import Harness
    from ....rtl.fabric import Fabric
    from ....rtl.netlist import Netlist
    from ....topology import IntArray
    from ....verilog.design import Design
    from ..image import Image
    from ..loader import ImageLoader
    from ..table import LoadedTable

__all__ = ["image_claim", "loading_wires", "writing_harnesses"]

#: The part of the image to which the next word belongs, for the reader; NONE between images. The
#: numbers are those of `LoaderState` plus 1.
NONE, BEGIN, FABRIC, PROGRAM, MODES, BASE, TABLE, FIRST, DATA, CHECK = range(10)

#: The initial contents of a table in its Verilog.
INITIAL_CONTENTS = re.compile(
    r"^  (integer index[^;]*;|initial begin\n.*?\n  end|initial [^\n]*)\n", re.M | re.S
)


def writing_harnesses(netlist: Netlist, design: Design, digest: int) -> Iterator[Harness]:
    """Yield the proofs that the loader follows the format of images, and that tables store words.

    Each proof is a harness: Verilog around one module, with the claims about it. First comes the
    harness of the loader, then one for each group of tables with the same Verilog. Initial contents
    and module names are left out of this comparison of Verilog.

    Parameters
    ----------
    netlist : Netlist
        Netlist of the fabric, which gives the roles of modules.
    design : Design
        Verilog of the fabric, with tables that can be written.
    digest : int
        Digest of the fabric, with which word 1 of an image is compared.
    """
    roles = netlist.roles
    (loader,) = (name for name, role in roles.items() if role is Role.LOADER)
    yield _loader_harness(design, loader, netlist.modules[loader](), digest)  # type: ignore[arg-type]
    texts = dict[str, str]()
    for name, role in roles.items():
        if role is Role.TABLE:
            module = design.prefix + name
            text = INITIAL_CONTENTS.sub("", design.modules[module]).replace(module, "", 1)
            texts.setdefault(text, name)
    for name in texts.values():
        yield _table_harness(design, name, netlist.modules[name]())  # type: ignore[arg-type]


def _table_harness(design: Design, name: str, table: LoadedTable) -> Harness:
    """Return the proof that a module with tables keeps each bit until the loader writes it.

    The result is a harness: Verilog around the module, with the claims about it. `design` is the
    emitted Verilog, `name` the name of the module, and `table` its hardware.
    """
    model = HarnessBuilder(design, name, resets=False)
    for number, (rows, bits) in enumerate(() if table.whole else table.tables):
        if bits:
            model.drive_input(
                f"address_{number}", model.add_constant_value(f"at_{number}", address_width(rows))
            )
    places = [*_written_bits(table)]
    for output, (runs, late) in table.parts.items():
        shown = [places[bit] for start, width in runs for bit in range(start, start + width)]
        ago = late + (2 if table.whole else 3)
        for low, high in _successive_bits(shown):
            writes, bit = shown[low]
            now = f"{output}[{high}:{low}]" if model.port_width(output) > 1 else output
            word = earlier_value(f"load_word[{bit + high - low}:{bit}]", ago)
            follows = f"{now} == ({earlier_value(writes, ago)} ? {word} : $past({now}))"
            model.claim(f"shows_{output}_from_{low}", follows)
    return model.make_harness(
        "each bit keeps its value until the loader writes its row, and then has the written value"
    )


def _written_bits(table: LoadedTable) -> Iterator[tuple[str, int]]:
    """Yield, for each bit of the rows that a module reads, the write by which the bit changes.

    A write is a pair of a condition in Verilog and a bit number: if the condition is true, the bit
    takes the bit of this number in `load_word`, the word from the loader. The bits come row by row
    in a module that reads all rows at once, else as the bits of one row of each table.
    """
    mine = "!rst && load_valid && (load_every || load_table == number)"
    listed = split_into_pieces(table.tables)
    for row in range(table.tables[0][0] if table.whole else 1):
        for number, piece in enumerate(listed):
            at = f"load_row == {row}"
            if not table.whole:
                last = address_width(piece.rows) - 1
                at = f"load_row[{last}:0] == at_{piece.table}"
            for bit in range(piece.width):
                yield f"{mine} && load_piece == {number} && {at}", bit


def _successive_bits(places: Sequence[tuple[str, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of each range of bits that the same word writes.

    `places` has the pair (condition, bit number) of each bit, from `_written_bits`. One claim can
    cover such a range.
    """
    first = 0
    for k in range(1, len(places) + 1):
        before = places[k - 1]
        if k == len(places) or places[k] != (before[0], before[1] + 1):
            yield first, k - 1
            first = k


def _loader_harness(design: Design, name: str, loader: ImageLoader, digest: int) -> Harness:
    """Return the proof that the loader takes the words of an image as the format says.

    The result is a harness: Verilog around the loader, with a model of the format, and the claims
    that loader and model agree. `design` is the emitted Verilog, `name` is the name of the loader,
    and `digest` the digest of the fabric.
    """
    model = HarnessBuilder(design, name)
    _add_reader(model, digest)
    if loader.blocks is not None:
        _claim_block_outputs(model, loader.blocks)
    model.claim_all({
        "is_where_the_reader_is": "waits_for == (state == 9 ? 0 : state + 1)",
        "knows_the_image": "filled == fills && bare == alone && number == fill",
        "knows_the_rows":
            "rows == rows_left && row == next_row && load_table == table && load_every == every && "
            "load_piece == piece",
        "sums_up": "waits_for == 0 || sum == check",
        "begins_when_nothing_runs_that_it_fills":
            "!begins || (accepts && (load_data == 0 ? !busy : !(busy && fills_the_run)))",
        "writes_each_word_of_rows": "load_valid == (steady && $past(load_we && now == 8))",
        "writes_where_it_says":
            "!load_valid || (load_row == $past(row) && load_word == $past(load_data))",
        "is_right_when_the_check_is":
            "right == (steady && $past(load_we && now == 9 && load_data == ~sum))",
        "is_over_until_an_image_is_there":
            f"waits_for == {NONE} || !(right || settles || settles_2 || settles_3)",
        "waits_until_all_is_written":
            "!steady || settles_3 == $past(settles_2 && !(load_we && load_first)) && "
            "settles_2 == $past(settles && !(load_we && load_first)) && "
            "settles == $past(right && !(load_we && load_first))",
        "is_there_only_when_whole":
            "!steady || !$past(steady) || !loaded || $past(loaded) || $past($past(settles_3))",
        "is_not_there_while_it_is_filled":
            "!steady || !$past(steady) || !$past($past(begins)) || $past(begins || settles_3) || "
            "!loaded",
    })  # fmt: skip
    return model.make_harness(
        "the loader reads each image as its format says and writes every word of its rows; the "
        "image counts as loaded once its CRC is right, not before",
        cycles=3,
    )


def _claim_block_outputs(model: HarnessBuilder, blocks: IntArray) -> None:
    """Add the claims about two outputs that only the loader of one board of several has.

    `image` names the loaded image, and `numbers` has the owner numbers of the tables of the board's
    nodes. `model` is the harness. `blocks` has the nodes of each board, shape (boards, nodes of a
    board).
    """
    width, bits = model.port_width("numbers"), model.port_width("numbers") // blocks.shape[1]
    joined = [
        sum(number << bits * k for k, number in enumerate(nodes)) for nodes in blocks.tolist()
    ]
    cases = "".join(f"block == {k} ? {width}'d{each} : " for k, each in enumerate(joined[:-1]))
    last, image = f"{width}'d{joined[-1]}", model.port_width("image")
    model.claim_all({
        "begins_at_rest": "!begins || !busy",
        "knows_the_check": "sum_of_image == last_word",
        "names_the_image_that_is_there":
            "!steady || !$past(steady) || !$past($past(settles_3)) || $past(begins || settles_3) "
            f"|| image == {image}'($past($past(sum_of_image)))",
        "numbers_tables_by_the_block": f"block >= {len(blocks)} || numbers == ({cases}{last})",
    })  # fmt: skip


def _add_reader(model: HarnessBuilder, digest: int) -> None:
    """Add to a harness the *reader*, a model of a loader that follows the format of images.

    The register ``waits_for`` of the reader is the part of the image to which the next word
    belongs. Its other registers are the CRC and the fields of the image so far. `model` is the
    harness. `digest` is the digest of the fabric, which an image must contain.
    """
    count = model.port_width("fills") // PIECE_BITS
    fills = (
        "load_data"
        if count == 1
        else f"{{load_data, filled[{count * PIECE_BITS - 1}:{PIECE_BITS}]}}"
    )
    bits = model.port_width("fill")
    model.add_wire("fills_the_run", "1'(filled >> last_entry)")
    of_blocks = model.has_name("numbers")
    stops = "waits_for >= 6 && busy" + " && (fills_the_run || bare)" * (not of_blocks)
    model.add_wire("now", f"load_first ? {BEGIN} : ({stops}) ? {NONE} : waits_for", 4)
    rests = " && all_rest" if model.has_name("all_rest") else " && !busy" * of_blocks
    model.add_wire("accepts", f"load_we && now == {BASE}{rests}")
    following = {
        BEGIN: f"load_data == {MAGIC} ? {FABRIC} : {NONE}",
        FABRIC: f"load_data == {digest} ? {PROGRAM} : {NONE}",
        PROGRAM: f"{MODES}",
        MODES: f"number == {count - 1} ? {BASE} : {MODES}",
        BASE: f"begins ? {TABLE} : {NONE}",
        TABLE: f"load_data[15:0] == {END_MARK} ? {CHECK} : {FIRST}",
        FIRST: f"{DATA}",
        DATA: f"rows == 0 ? {TABLE} : {DATA}",
        CHECK: f"{NONE}",
    }
    cases = " : ".join(f"now == {at} ? ({after})" for at, after in following.items())
    model.add_register("waits_for", f"!load_we ? waits_for : {cases} : {NONE}", 4)

    def add_field(name: str, width: int, **values: str) -> None:
        """Add a register `name` of `width` bits that takes fields from some words of the image.

        Each keyword is a part of the image, such as ``TABLE``, and its value is the new value in
        Verilog when a word of this part comes.
        """
        taken = " : ".join(f"load_we && now == {globals()[at]} ? {v}" for at, v in values.items())
        model.add_register(name, f"{taken} : {name}", width)

    add_field("filled", count * PIECE_BITS, MODES=fills)
    add_field("number", bits, PROGRAM="0", MODES="number + 1")
    add_field("bare", 1, BASE="load_data == 0")
    add_field("table", model.port_width("load_table"), TABLE="load_data")
    add_field("every", 1, TABLE=f"load_data[15:0] == {ALL_NODES}")
    add_field("piece", model.port_width("load_piece"), TABLE=f"load_data >> {PIECE_AT}")
    if of_blocks:
        add_field("sum_of_image", PIECE_BITS, CHECK="load_data")
    add_field("rows", PIECE_BITS - ROWS_AT, TABLE=f"load_data >> {ROWS_AT}", DATA="rows - 1")
    add_field("row", model.port_width("load_row"), FIRST="load_data", DATA="row + 1")
    model.add_wire(
        "summed", f"(load_first ? {CRC_BITS}'d{INITIAL_CRC} : sum) ^ load_data", CRC_BITS
    )
    parities = (f"^(summed & {CRC_BITS}'d{mask})" for mask in reversed(_crc_masks()))
    model.add_register("sum", f"load_we ? {{{', '.join(parities)}}} : sum", CRC_BITS)


def _crc_masks() -> list[int]:
    """Return a mask for each bit of the CRC.

    After one more word, bit k of the CRC is the parity of ``(old CRC xor word) & mask[k]``. The CRC
    is linear in the old CRC and in the word, so `zlib` gives the effect of each single bit. Why not
    the masks of the hardware: the claim must not rely on them.
    """
    columns = [zlib.crc32((1 << k).to_bytes(CRC_BITS // 8, "little"), INITIAL_CRC) ^ INITIAL_CRC
               for k in range(CRC_BITS)]  # fmt: skip
    return [sum((column >> bit & 1) << k for k, column in enumerate(columns))
            for bit in range(CRC_BITS)]  # fmt: skip


def image_claim(image: Image) -> Claim:
    """Return the claim that the words of an image write `Image.contents` into the tables."""
    says = "the words of the image write each row that its modes need, and its CRC is right"
    return Claim("image", "comparison", says, partial(_check_image, image))


def _check_image(image: Image) -> int:
    """Execute the words of an image as the loader would, and compare the rows with its contents.

    The result is the number of compared rows. Raises `Refuted` if a row or the CRC is wrong.
    """
    words, layout = image.words, image.layout
    if zlib.crc32(np.array(words[:-1], "<u4").tobytes()) != words[-1]:
        raise make_refutation("image", "check", "the last word must be the check of all others")
    written = _written_rows(words[FILL_MASK_INDEX + layout.fill_words + 1 : -2], image.room.nodes)
    count = 0
    for owner, tables in enumerate(layout.table_sizes):
        for number, (table, _, low, width) in enumerate(split_into_pieces(tables)):
            for row, value in enumerate(image.contents[owner][table]):
                if value == UNUSED_ROW:
                    continue
                found = written.get((owner, number, row))
                if found is None or (found ^ value >> low) & ((1 << width) - 1):
                    message = f"row {row} of piece {number} of table {owner} must be written"
                    raise make_refutation("image", str(owner), message)
                count += 1
    return count


def _written_rows(words: Sequence[int], nodes: int) -> dict[tuple[int, int, int], int]:
    """Return the contents of all table rows after the words of an image have been written.

    The result is {(owner, piece, row): word}; the owner is a node or a table that exists once, and
    a piece is a range of columns of its tables. `words` are the row runs of an image: a header, the
    first row, and a word for each row. `nodes` is the number of nodes; a run for all nodes writes
    the row of each.
    """
    found, rest = dict[tuple[int, int, int], int](), iter(words)
    for head in rest:
        first, owner = next(rest), head & (1 << PIECE_AT) - 1
        for row in range(first, first + (head >> ROWS_AT) + 1):
            word, piece = next(rest), head >> PIECE_AT & (1 << ROWS_AT - PIECE_AT) - 1
            for each in range(nodes) if owner == ALL_NODES else (owner,):
                found[each, piece, row] = word
    return found


def loading_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires of the loader and of all tables, as found and as expected.

    Among them are the bus from the loader to each table, and the number (*owner*) by which each
    table is addressed on the bus. The bus reaches the tables of nodes through a register for each
    group of nodes, and other tables directly. `text` is the Verilog of the fabric with constant
    tables, read as gates.
    """
    layout, nodes, staged = fabric.tables.layout, fabric.nodes, control_tree_inputs(fabric, text)
    every = layout.room.nodes
    (loader,) = (instance.name for instance in fabric.netlist.instances_with_role(Role.LOADER))
    given, numbers = text.instances[loader].pins, dict[str, int]()
    numbers |= {f"the_table_node_{node}": node for node in range(nodes)}
    numbers |= {f"the_table_{name}": every + k for k, name in enumerate(layout.single_tables)}
    for name, number in numbers.items():
        pins = text.instances[name].pins
        bits = pins["number"]
        known: list[Bit] = [str(number >> k & 1) for k in range(len(bits))]
        if number < nodes and "numbers" in given:
            known = given["numbers"][len(bits) * number :][: len(bits)]
        yield name, "number", [*bits], known
        for port in layout.bus_signals:
            wanted: list[Bit] = [*given[port]]
            found: list[Bit | None] = [*pins[port]]
            if number < nodes:
                found = [staged.get(bit) for bit in pins[port]]
            elif port == "load_every":
                wanted = ["0"]
            yield name, port, found, wanted
    yield from planned_wires(fabric, text, Role.LOADER)
