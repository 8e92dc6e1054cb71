"""Check of packet tables: an engine accesses each word at its location in the core.

An engine is the loader of a node, which writes sent packets into memories, or the unloader, which
reads received packets. A *bank* is the number of one of the memories. The *packet table* of an
engine has a row for each block of a packet, with the *fields* bank and base address. Bank and
address of a word are decoded from its row, and compared with the location that the core gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....proof.report import make_refutation

if TYPE_CHECKING:
    from ....rtl.core import Core
    from ....topology import BoolArray, IntArray
    from ..engine import EngineShape
    from ..table import PacketTable

__all__ = ["check_tables"]


def check_tables(core: Core, shape: EngineShape) -> int:
    """Check that a packet table gives the right location of each word, for all possible packets.

    These are the packets of all lengths, all forms and all roots. A location is a memory and an
    address in it.

    Parameters
    ----------
    core : Core
        The core, which gives the locations of words.
    shape : EngineShape
        Parameters of the loaders or unloaders, with their packet table.

    Returns
    -------
    int
        Number of words that were checked.
    """
    program, count = core.program, 0
    fields = {name: decode_field(shape.packet_table, name) for name in shape.packet_table.fields}
    lengths = range(1, program.flits + 1) if program.any_length else [program.flits]
    for form, of_form in enumerate(program.forms):
        for root in range(of_form.groups.group_size if of_form.any_root else 1):
            rows, within = _rows_and_steps(shape, form, root, -(-program.flits // core.beat))
            for length in lengths:
                wanted, has = _expected_fields(core, shape, form, length, root)
                beats = has.shape[2]
                found = {name: values[:, rows[:, :beats]] for name, values in fields.items()}
                base, step = found.pop("base"), within[:beats]
                found["address"] = base | step if shape.address_is_disjoint else base + step
                for name, values in found.items():
                    wrong = has & (wanted[name] >= 0) & (wanted[name] != values)
                    if wrong.any():
                        at = tuple(np.argwhere(wrong)[0].tolist())
                        right, here = int(wanted[name][at]), int(values[at])
                        message = (
                            f"{name.capitalize()} of word {at[2]} of packet {at[1]} that node "
                            f"{at[0]} {shape.verb}s must be {right}, not {here}"
                        )
                        raise make_refutation("packet tables", name, message)
                count += int(has.sum())
    return count


def decode_field(table: PacketTable, name: str) -> IntArray:
    """Return the values of a field that the hardware reads from a packet table.

    The result has the shape (nodes, rows).

    Each value is assembled from its bits, which are constants, bits of the row address, or bits of
    the ROM.

    Parameters
    ----------
    table : PacketTable
        Packet tables of all loaders, or of all unloaders.
    name : str
        Name of the field, such as "bank" or "base".
    """
    found, rows = np.zeros_like(table.rom_rows), np.arange(table.n_rows)
    for start, packets, blocks, places in zip(
        table.first_rows, table.packet_bits, table.block_bits, table.bit_sources[name], strict=True
    ):
        here = slice(start, start + (1 << packets + blocks))
        for bit, (kind, number) in enumerate(places):
            source = {"constant": np.array(number), "address": rows[here] >> number & 1}.get(
                kind, table.rom_rows[:, here] >> number & 1
            )
            found[:, here] |= source << bit
    return found


def _rows_and_steps(
    shape: EngineShape, form: int, root: int, beats: int
) -> tuple[IntArray, IntArray]:
    """Return two arrays for the packets of one form: the table row, and the distance, of each word.

    The first array, of shape (packets, words), has the number of the word's row in the packet
    table. The second, of shape (words,), has the distance of the word from the first address of its
    block. `beats` is the number of words of the longest packet. `form` and `root` are the numbers
    of the form and of the root in its group.
    """
    words, packets, table = shape.word_shape, shape.packets[form], shape.packet_table
    packet = np.array([root]) if packets.by_root else np.arange(packets.most_packets)
    index = np.arange(beats)
    if words.in_turn:
        step, block = np.divmod(index, packets.n_blocks)
    else:
        block, step = np.divmod(index, words.block[form] if packets.n_blocks > 1 else beats)
    rows: IntArray = table.first_rows[form] + (packet[:, None] << table.block_bits[form]) + block
    return rows, step * packets.pitch


def _expected_fields(
    core: Core, shape: EngineShape, form: int, length: int, root: int
) -> tuple[dict[str, IntArray], BoolArray]:
    """Return the expected location of each word, and an array that is True for words that exist.

    The location has three arrays, by name: ``bank`` (the number of a memory), ``address``, and
    ``own``, 1 for a word that the node sends to itself. All arrays have the shape (nodes, packets,
    words). A value is -1 where it does not matter. `core` gives the locations. `form`, `length` and
    `root` are choices of the run: number of the form, flits of a packet, and position of the root
    in its group.
    """
    packets, received = shape.packets[form], shape.verb == "unload"
    first = core.beat * np.arange(-(-length // core.beat))
    words = np.arange(packets.most_packets)[:, None] * length + first
    bank, address = (
        each.reshape(len(core.nodes), *words.shape)
        for each in core.locate_words(
            received=received, form=form, words=words.ravel(), length=length, root=root
        )
    )
    if packets.numbers is not None:
        bank, address = (
            np.take_along_axis(each, packets.numbers[..., None], axis=1) for each in (bank, address)
        )
    own = np.array([memory.own for memory in core.rows.memories])[bank] & received
    position = core.program.forms[form].groups.position_of_node[core.nodes]
    here = packets.has_packets & ((position == root) | (not packets.at_root))
    wanted = {
        "bank": np.where(own, -1, bank),
        "address": np.where(own, -1, address),
        "own": own.astype(int),
    }
    has = here[:, None, None] & (address >= 0)
    if packets.lengths is not None:
        has &= first < packets.lengths[..., None]
    return wanted, has
