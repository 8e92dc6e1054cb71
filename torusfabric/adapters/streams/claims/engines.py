"""Parts of the models of loader and unloader: runs, words and packet tables, in Verilog.

A model numbers runs from 0, modulo twice the sections of memories, by the pulses `run_begins` and
`run_ends`. The last run in each section has *facts*: form, root, length of packets, and a flag for
a dropped run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....proof.model import Model, by_value, within

if TYPE_CHECKING:
    from ..engine import EngineShape
    from ..sections import Sections
    from ..table import PacketTable

__all__ = ["add_runs", "add_words", "address_of", "cases", "fact", "field_of", "full_beats",
           "keep_facts", "row_of", "section_of", "takes_part"]  # fmt: skip


def add_runs(model: Model, sections: Sections, *, begins_if: str) -> None:
    """Add the numbers `begun` and `ended` of runs, and assume that runs follow one another.

    Parameters
    ----------
    begins_if : str
        A condition that is true when a run begins.
    """
    bits = sections.number_bits
    model.drive("clear", "rst")
    if not model.has("run_ends"):
        # The module has no input for the end of runs, but the model needs it.
        model.free("run_ends")
    model.register("begun", "begun + run_begins", bits)
    model.register("ended", "ended + run_ends", bits)
    model.wire("under_way", "begun != ended")
    model.assume("!run_begins || !under_way || run_ends")
    # No run ends in the cycle after its begin, in which its facts come.
    model.assume("!run_ends || (under_way && !(steady && $past(begun) == ended))")
    model.assume(f"!run_begins || {begins_if}")


def keep_facts(model: Model, sections: Sections, bits: Mapping[str, int]) -> None:
    """Assume that facts of a section change only as the next run in it begins."""
    begun = section_of("$past(begun)", sections)
    for name, width in bits.items():
        for section, now, then in model.parts(name, sections.count, width):
            model.assume(
                f"!steady || ($past(run_begins) && {begun} == {section}) || {now} == {then}"
            )


def section_of(number: str, sections: Sections) -> str:
    """Return the section of a run or message, in Verilog.

    Examples
    --------
    >>> from torusfabric.adapters.streams.sections import Sections
    >>> section_of("begun", Sections(3))
    'begun[1:0]'
    """
    return f"{number}[{sections.bits - 1}:0]"


def fact(model: Model, name: str, section: str, bits: int) -> str:
    """Return a fact of a section, in Verilog; 0 if the module has no input for the fact."""
    return within(name, section, bits) if model.has(name) else "1'b0"


def takes_part(shape: EngineShape, port: str, form: str, root: str) -> str:
    """Return, in Verilog, True if a node has packets in a form with a root."""
    at_root = [each.at_root for each in shape.packets]
    if not any(at_root):
        return f"{port}[{form}]"
    own = within("position", form, shape.facts.position_bits)
    return f"({port}[{form}] && (!{by_value(at_root, form)} || {root} == {own}))"


def cases(texts: Sequence[str], form: str) -> str:
    """Return one of several expressions, one for each form, in Verilog."""
    *others, last = texts
    if all(text == last for text in others):
        return last
    return f"({''.join(f'{form} == {k} ? {text} : ' for k, text in enumerate(others))}{last})"


# Words


def add_words(model: Model, shape: EngineShape, number: str, form: str, *, valid: str) -> None:
    """Add the block `word_block` of a word, and its offset `word_within` in the block.

    If the module has counters for them, these are used, with a claim: they satisfy an equation with
    the word number that has one solution. Nothing is claimed beyond the longest packet of a form.

    Parameters
    ----------
    number : str
        The number of the word in its packet.
    valid : str
        A condition under which the module has to count.
    """
    words = shape.words
    if words.divisor_bits is not None:
        divisor = 1 << words.divisor_bits
        low, high = f"{number} % {divisor}", f"{number} / {divisor}"
        block, step = (low, high) if words.in_turn else (high, low)
        model.wire("word_block", block, words.chunk_bits)
        model.wire("word_within", f"({step}) * {words.pitch[0]}", words.within_bits)
        return
    counts = words.chunk_bits > 0 or max(words.pitch) > 1
    model.wire("word_block", "chunk" if words.chunk_bits else "0", max(words.chunk_bits, 1))
    model.wire("word_within", "within_chunk" if counts else number, words.within_bits)
    if not counts:
        return
    bits = words.index_bits + max(words.pitch).bit_length() + words.chunk_bits + 2
    block, step, place = (f"{bits}'({name})" for name in ("word_block", "word_within", number))
    equations = []
    for each in shape.packets:
        pitch, most = each.pitch, each.blocks * each.words
        if words.in_turn or not words.chunk_bits:
            parts = f"{step} * {each.blocks} + {block} * {pitch}"
            end = f"word_block < {each.blocks}"
        else:
            parts = f"{step} + {block} * {words.block * pitch}"
            end = f"word_within < {words.block * pitch}"
        aligned = f" && word_within % {pitch} == 0" * (pitch > 1)
        equations.append(f"({place} >= {most} || ({parts} == {place} * {pitch} && {end}{aligned}))")
    model.claim("counts_blocks", f"!({valid}) || {cases(equations, form)}")


def full_beats(shape: EngineShape) -> list[str]:
    """Return `tkeep` of a word with one full flit, with two, and so on."""
    size = shape.keep_bits // shape.beat
    return [f"{shape.keep_bits}'h{(1 << size * (k + 1)) - 1:x}" for k in range(shape.beat)]


# Packet tables


def row_of(table: PacketTable, packet: str, form: str) -> str:
    """Return the address of the row of `word_block` of a packet, in Verilog."""
    bits, texts = max(table.address_bits, 1), []
    for start, packets, blocks in zip(
        table.starts, table.packet_bits, table.block_bits, strict=True
    ):
        found = [f"{bits}'d{start}"]
        found += [f"{bits}'({packets}'({packet})) << {blocks}"] * (packets > 0)
        found += [f"{bits}'({blocks}'(word_block))"] * (blocks > 0)
        texts.append("(" + " | ".join(f"({each})" for each in found) + ")")
    return cases(texts, form)


def field_of(table: PacketTable, name: str, address: str, row: str, form: str) -> str:
    """Return a field of a row, in Verilog, from the address of the row and the ROM output."""
    texts = {"constant": "1'b{}", "address": address + "[{}]", "rom": row + "[{}]"}
    bits = [
        cases([texts[kind].format(number) for kind, number in places], form)
        for places in zip(*table.places[name], strict=True)
    ]
    return f"{{{', '.join(reversed(bits))}}}" if bits else "1'b0"


def address_of(shape: EngineShape, base: str, within: str) -> str:
    """Return the address of a word, in Verilog, from base address and offset."""
    bits, sign = shape.port.address_bits, "|" if shape.address_is_disjoint else "+"
    return f"{bits}'({bits}'({base}) {sign} {bits}'({within}))"
