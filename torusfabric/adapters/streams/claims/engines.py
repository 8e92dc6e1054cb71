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
           "section_of", "has_packets"]  # fmt: skip


def add_runs(model: HarnessBuilder, sections: Sections, *, begins_if: str) -> None:
    """Add the numbers of runs that have begun and ended, and assume that runs follow one another.

    A run may begin in the cycle in which the run before ends, or later.

    Parameters
    ----------
    model : HarnessBuilder
        Harness to which registers and assumptions are added.
    sections : Sections
        Division of the memories. It decides the width of the numbers.
    begins_if : str
        An assumption about the cycle in which a run begins, in Verilog.
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
    """Assume that the facts of a section change only when the next run in this section begins.

    `model` is the harness to which the assumptions are added, and `sections` the division of the
    memories. `bits` has the width of each fact by name.
    """
    begun = section_of("$past(begun)", sections)
    for name, width in bits.items():
        for section, now, then in model.vector_fields(name, sections.n_sections, width):
            model.assume(
                f"!steady || ($past(run_begins) && {begun} == {section}) || {now} == {then}"
            )


def section_of(number: str, sections: Sections) -> str:
    """Return the section of a run or message, in Verilog.

    `number` is an expression for the number of the run or message, and `sections` the division of
    the memories.

    Examples
    --------
    >>> from torusfabric.adapters.streams.sections import Sections
    >>> section_of("begun", Sections(3))
    'begun[1:0]'
    """
    return f"{number}[{sections.section_number_bits - 1}:0]"


def section_fact(model: HarnessBuilder, name: str, section: str, bits: int) -> str:
    """Return a fact of the last run in a section, in Verilog; 0 if the module has no such input.

    `model` is the harness. `name` is that of the input with the fact, which has several fields of
    `bits` bits. `section` is an expression for the number of the field: the section or, at a
    loader, the parity of the message.
    """
    return vector_field(name, section, bits) if model.has_name(name) else "1'b0"


def has_packets(shape: EngineShape, port: str, form: str, root: str) -> str:
    """Return an expression, in Verilog: true if a node has packets in a form with a root.

    `port` is the input of the engine with a bit for each form: `sends` or `receives`. `form` and
    `root` are expressions, too. `shape` has the parameters of the engine.
    """
    at_root = [each.at_root for each in shape.packets]
    if not any(at_root):
        return f"{port}[{form}]"
    own = vector_field("position", form, shape.facts.position_bits)
    return f"({port}[{form}] && (!{select_by_value(at_root, form)} || {root} == {own}))"


def choose_by_form(texts: Sequence[str], form: str) -> str:
    """Return the expression, in Verilog, that selects one of several expressions by the form.

    `texts` has an expression for each form. `form` is an expression for the number of the form.
    """
    *others, last = texts
    if all(text == last for text in others):
        return last
    return f"({''.join(f'{form} == {k} ? {text} : ' for k, text in enumerate(others))}{last})"


# Words


def add_word_position(
    model: HarnessBuilder, shape: EngineShape, number: str, form: str, *, valid: str
) -> None:
    """Add the wires ``word_block`` and ``word_within``: block of a word, and position in the block.

    If the module has counters for both, the wires are these counters. A claim then says that their
    values satisfy the equation for the number of the word in its packet, which has one solution.
    Nothing is claimed beyond the longest packet of a form.

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
    for each in shape.packets:
        pitch, most = each.pitch, each.n_blocks * each.words
        if words.in_turn or not words.chunk_bits:
            parts = f"{step} * {each.n_blocks} + {block} * {pitch}"
            end = f"word_block < {each.n_blocks}"
        else:
            parts = f"{step} + {block} * {words.block * pitch}"
            end = f"word_within < {words.block * pitch}"
        aligned = f" && word_within % {pitch} == 0" * (pitch > 1)
        equations.append(f"({place} >= {most} || ({parts} == {place} * {pitch} && {end}{aligned}))")
    model.claim("counts_blocks", f"!({valid}) || {choose_by_form(equations, form)}")


def full_flit_keeps(shape: EngineShape) -> list[str]:
    """Return the values of `tkeep` for 1, 2, .. full flits in a word, as Verilog constants.

    `shape` has the widths: bytes of a word, and flits of a word.
    """
    size = shape.keep_bits // shape.beat
    return [f"{shape.keep_bits}'h{(1 << size * (k + 1)) - 1:x}" for k in range(shape.beat)]


# Packet tables


def row_expression(table: PacketTable, packet: str, form: str) -> str:
    """Return the address of the row of `word_block` of a packet, in Verilog.

    `table` is the packet table. `packet` and `form` are expressions for the number of the packet
    and its form.
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
    """Return a field of a row, in Verilog, from the address of the row and the ROM output.

    `table` is the packet table, and `name` that of the field. `form` is an expression for the form
    of the packet.
    """
    texts = {"constant": "1'b{}", "address": address + "[{}]", "rom": row + "[{}]"}
    bits = [
        choose_by_form([texts[kind].format(number) for kind, number in places], form)
        for places in zip(*table.bit_sources[name], strict=True)
    ]
    return f"{{{', '.join(reversed(bits))}}}" if bits else "1'b0"


def address_expression(shape: EngineShape, base: str, within: str) -> str:
    """Return the address of a word, in Verilog.

    `base` is the first address of its block, `within` the distance of the word from it. `shape` has
    the width of the address. It also says whether an OR can replace the sum.
    """
    bits, sign = shape.memory_port.address_bits, "|" if shape.address_is_disjoint else "+"
    return f"{bits}'({bits}'({base}) {sign} {bits}'({within}))"
