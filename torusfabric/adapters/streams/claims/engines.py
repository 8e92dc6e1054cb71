"""Parts that the models of loader and unloader share: runs, words and packet tables, in Verilog.

A loader takes packets from the user and writes them into the memories of a node; an unloader sends
received words to the user. Each memory is divided into *sections*, and consecutive runs use them in
turn. A *harness* is Verilog around a module, with a model of the expected behaviour and the claims.
The model counts the pulses `run_begins` and `run_ends`, modulo twice the number of sections. So it
numbers runs from 0. The last run in each section has *facts*: form, root, length of packets, and a
flag for a dropped run. The *packet table* has a row for each block of a packet, with its location.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, select_by_value, vector_field

if TYPE_CHECKING:
    from ..engine import EngineShape
    from ..sections import Sections
    from ..table import PacketTable

__all__ = ["add_runs", "add_word_position", "address_expression", "choose_by_form", "section_fact",
           "field_expression", "full_flit_keeps", "assume_stable_facts", "row_expression",
           "section_of", "has_packets", "last_packet", "planned_length"]  # fmt: skip


def add_runs(model: HarnessBuilder, sections: Sections, *, begins_if: str) -> None:
    """Add counters to a proof harness: the runs that have begun, and the runs that have ended.

    The proof assumes that runs follow one another: a run may begin in the cycle in which the run
    before ends, or later. The harness is that of a loader or unloader.

    Parameters
    ----------
    model : HarnessBuilder
        Harness to which registers and assumptions are added.
    sections : Sections
        Division of each memory into equal parts, which runs use in turn. It decides the width of
        the run numbers.
    begins_if : str
        A condition that is assumed true in each cycle in which a run begins, in Verilog.
    """
    bits = sections.message_number_bits
    model.drive_input("clear", "rst")
    if not model.has_name("run_ends"):
        # The module has no input for the end of runs, but the model needs it.
        model.add_free_value("run_ends")
    model.add_register("begun", "begun + run_begins", bits)
    model.add_register("ended", "ended + run_ends", bits)
    model.add_wire("under_way", "begun != ended")
    model.assume("!run_begins || !under_way || run_ends")
    # No run ends in the cycle after its begin. In this cycle its facts arrive.
    model.assume("!run_ends || (under_way && !(steady && $past(begun) == ended))")
    model.assume(f"!run_begins || {begins_if}")


def assume_stable_facts(model: HarnessBuilder, sections: Sections, bits: Mapping[str, int]) -> None:
    """Assume that inputs with facts about runs change only when a run begins.

    Each input has a field for the last run in each section (a part of each memory, used by runs in
    turn). The field may change only when the next run in its section begins. `bits` has the width
    of a field for each input, by name. `model` is the proof harness to which the assumptions are
    added, and `sections` the division of the memories.
    """
    begun = section_of("$past(begun)", sections)
    for name, width in bits.items():
        for section, now, then in model.vector_fields(name, sections.n_sections, width):
            model.assume(
                f"!steady || ($past(run_begins) && {begun} == {section}) || {now} == {then}"
            )


def section_of(number: str, sections: Sections) -> str:
    """Return a Verilog expression for the memory section that a run or message uses.

    `number` is an expression for the number of the run or message, and `sections` the division of
    the memories.

    Examples
    --------
    With four sections (three buffers), the section is the two lowest bits of the number.

    >>> from torusfabric.adapters.streams.sections import Sections
    >>> section_of("begun", Sections(3))
    'begun[1:0]'
    """
    return f"{number}[{sections.section_number_bits - 1}:0]"


def section_fact(model: HarnessBuilder, name: str, section: str, bits: int) -> str:
    """Return a Verilog expression for a fact of a run, such as its form: one field of an input.

    The input with the name `name` has several fields of `bits` bits. `section` is an expression for
    the number of the field: the memory section of the run or, at a loader, the lowest bit of the
    message number. The result is 0 if the module has no such input. `model` is the proof harness of
    the module.
    """
    return vector_field(name, section, bits) if model.has_name(name) else "1'b0"


def has_packets(shape: EngineShape, port: str, form: str, root: str) -> str:
    """Return a Verilog expression: true if a node sends, or receives, packets in a run.

    `port` is the input with a bit for each form: `sends` of a loader, or `receives` of an unloader.
    `form` and `root` are expressions for the choices of the run. `shape` has the parameters of the
    module.
    """
    at_root = [each.at_root for each in shape.packets]
    if not any(at_root):
        return f"{port}[{form}]"
    own = vector_field("position", form, shape.facts.position_bits)
    return f"({port}[{form}] && (!{select_by_value(at_root, form)} || {root} == {own}))"


def last_packet(shape: EngineShape) -> str:
    """Return a Verilog expression: the number, from 0, of the last packet of the present message.

    It is constant for each form if all nodes have equally many packets. `shape` has the parameters
    of the module.
    """
    if shape.packet_bits and shape.has_packet_counts:
        return vector_field("own_last", "mode", shape.packet_bits)
    return select_by_value([count - 1 for count in shape.packet_counts], "mode")


def planned_length(shape: EngineShape, packet: str) -> str:
    """Return a Verilog expression: the number of the last flit of a packet whose length is planned.

    It is -1 if the node has no such packet. `packet` is an expression for the number of the packet,
    and `shape` has the parameters of the module.
    """
    size, at = 1 << shape.packet_bits, "mode"
    if shape.packet_bits:
        at = f"mode * {size} + ({packet}) % {size}"
    return vector_field("lengths", at, shape.planned_length_bits)


def choose_by_form(texts: Sequence[str], form: str) -> str:
    """Return a Verilog expression that selects one of several expressions by the form of a run.

    `texts` has an expression for each form. `form` is an expression for the number of the form. For
    texts ``a`` and ``b`` the result is ``(f == 0 ? a : b)``.
    """
    *others, last = texts
    if all(text == last for text in others):
        return last
    return f"({''.join(f'{form} == {k} ? {text} : ' for k, text in enumerate(others))}{last})"


# Words


def add_word_position(
    model: HarnessBuilder, shape: EngineShape, number: str, form: str, *, valid: str
) -> None:
    """Add two wires to a proof harness: the block of a word in its packet, and its place there.

    The wire ``word_block`` is the number of the block, and ``word_within`` the distance of the word
    from the first address of the block.

    If the proved module has counters with these two numbers, the wires are the counters. A claim
    then says that the counters satisfy an equation with the number of the word in its packet. The
    equation has one solution, so the counters are right. Nothing is claimed beyond the longest
    packet of a form.

    Parameters
    ----------
    model : HarnessBuilder
        Harness to which wires and claim are added.
    shape : EngineShape
        Parameters of the engine: the division of its packets into blocks.
    number : str
        The number of the word in its packet.
    form : str
        The form of the packet, as an expression in Verilog.
    valid : str
        A condition under which the counters have to be right.
    """
    words = shape.word_shape
    if words.divisor_bits is not None:
        divisor = 1 << words.divisor_bits
        low, high = f"{number} % {divisor}", f"{number} / {divisor}"
        block, step = (low, high) if words.in_turn else (high, low)
        model.add_wire("word_block", block, words.chunk_bits)
        model.add_wire("word_within", f"({step}) * {words.pitch[0]}", words.offset_bits)
        return
    counts = words.chunk_bits > 0 or max(words.pitch) > 1
    model.add_wire("word_block", "chunk" if words.chunk_bits else "0", max(words.chunk_bits, 1))
    model.add_wire("word_within", "within_chunk" if counts else number, words.offset_bits)
    if not counts:
        return
    bits = words.index_bits + max(words.pitch).bit_length() + words.chunk_bits + 2
    block, step, place = (f"{bits}'({name})" for name in ("word_block", "word_within", number))
    equations = []
    for each, size in zip(shape.packets, words.block, strict=True):
        pitch, most = each.pitch, each.n_blocks * each.words
        if words.in_turn or not words.chunk_bits:
            parts = f"{step} * {each.n_blocks} + {block} * {pitch}"
            end = f"word_block < {each.n_blocks}"
        else:
            parts = f"{step} + {block} * {size * pitch}"
            end = f"word_within < {size * pitch}"
        aligned = f" && word_within % {pitch} == 0" * (pitch > 1)
        equations.append(f"({place} >= {most} || ({parts} == {place} * {pitch} && {end}{aligned}))")
    model.claim("counts_blocks", f"!({valid}) || {choose_by_form(equations, form)}")


def full_flit_keeps(shape: EngineShape) -> list[str]:
    """Return the values of `tkeep` (valid bytes) for 1, 2, .. full flits in a word, in Verilog.

    For words of two flits with two bytes each they are ``4'h3`` and ``4'hf``.

    `shape` has the bytes and the flits of a word.
    """
    size = shape.keep_bits // shape.beat
    return [f"{shape.keep_bits}'h{(1 << size * (k + 1)) - 1:x}" for k in range(shape.beat)]


# Packet tables


def row_expression(table: PacketTable, packet: str, form: str) -> str:
    """Return a Verilog expression for the address of a row of the packet table.

    The packet table `table` has a row for each block of a packet. Here the number of the block is
    on the wire ``word_block``. `packet` and `form` are expressions for the number of the packet and
    its form.
    """
    bits, texts = max(table.address_bits, 1), []
    for start, packets, blocks in zip(
        table.first_rows, table.packet_bits, table.block_bits, strict=True
    ):
        found = [f"{bits}'d{start}"]
        found += [f"{bits}'({packets}'({packet})) << {blocks}"] * (packets > 0)
        found += [f"{bits}'({blocks}'(word_block))"] * (blocks > 0)
        texts.append("(" + " | ".join(f"({each})" for each in found) + ")")
    return choose_by_form(texts, form)


def field_expression(table: PacketTable, name: str, address: str, row: str, form: str) -> str:
    """Return a Verilog expression for a field of a row of the packet table, such as ``base``.

    Each bit is a constant, a bit of the row's address (`address`), or a bit of the ROM output
    (`row`).

    `table` is the packet table, which has a row for each block of a packet; `name` is the name of
    the field. `form` is an expression for the form of the packet.
    """
    texts = {"constant": "1'b{}", "address": address + "[{}]", "rom": row + "[{}]"}
    bits = [
        choose_by_form([texts[kind].format(number) for kind, number in places], form)
        for places in zip(*table.bit_sources[name], strict=True)
    ]
    return f"{{{', '.join(reversed(bits))}}}" if bits else "1'b0"


def address_expression(shape: EngineShape, base: str, within: str) -> str:
    """Return a Verilog expression for the address of a word.

    The address is the sum of `base`, the first address of the block, and `within`, the distance of
    the word from it; both are expressions. `shape` has the width of the address, and decides if an
    OR can replace the sum.
    """
    bits, sign = shape.memory_port.address_bits, "|" if shape.address_is_disjoint else "+"
    return f"{bits}'({bits}'({base}) {sign} {bits}'({within}))"
