"""Runs and words, as a node knows them: what loaders and unloaders are proved with.

Runs are numbered from 0, modulo twice the sections of memories, by the pulses `run_begins` and
`run_ends`. Of the last run in each section there are facts: the mode, the root, the length of
packets, whether anything came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..model import Model, by_value, within

if TYPE_CHECKING:
    from ...rtl.streams.sections import Sections
    from ...rtl.streams.shapes import LoaderShape, UnloaderShape
    from ...rtl.streams.words import WordShape

__all__ = ["add_runs", "add_words", "base_of", "counts_steps", "fact", "full_beats", "keep_facts",
           "key_of", "section_of", "takes_part"]  # fmt: skip


def add_runs(model: Model, sections: Sections, *, begins_if: str) -> None:
    """Add the numbers `begun` and `ended` of runs, and assume that runs follow one another.

    Parameters
    ----------
    begins_if : str
        What is true when a run begins.
    """
    bits = sections.number_bits
    model.drive("clear", "rst")
    if not model.has("run_ends"):
        # Runs end even if the module is not told of it.
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
    """The section of a run or message, in Verilog.

    Examples
    --------
    >>> from torusfabric.rtl.streams.sections import Sections
    >>> section_of("begun", Sections(3))
    'begun[1:0]'
    """
    return f"{number}[{sections.bits - 1}:0]"


def counts_steps(shape: WordShape) -> bool:
    """Whether the place of a word is another number than that of the word."""
    return bool(shape.chunk_bits) or max(shape.pitch) > 1


def _split_words(model: Model, shape: WordShape, number: str) -> None:
    """Chunks, and words within them, where these are bits of the number of a word."""
    divisor = 1 << (shape.divisor_bits or 0)
    low, high = f"{number} % {divisor}", f"{number} / {divisor}"
    chunk, steps = (low, high) if shape.in_turn else (high, low)
    model.wire("word_chunk", chunk, shape.chunk_bits)
    model.wire("word_within", f"({steps}) * {shape.pitch[0]}", shape.within_bits)


def add_words(model: Model, shape: WordShape, number: str, mode: str, *, valid: str = "1") -> None:
    """Add `word_chunk` and `word_within` of a word.

    Where the module counts them, they are its registers, and it is claimed that they satisfy an
    equation with the number of the word that has no other solution.

    Parameters
    ----------
    number, mode : str
        The number of the word in its packet, and its mode.
    valid : str
        When the module has to count.
    """
    chunk = "chunk" if shape.chunk_bits else "0"
    counted = counts_steps(shape)
    if shape.divisor_bits is not None:
        _split_words(model, shape, number)
        return
    model.wire("word_chunk", chunk, max(shape.chunk_bits, 1))
    model.wire("word_within", "within_chunk" if counted else number, shape.within_bits)
    if not counted:
        return
    bits = shape.index_bits + max(shape.pitch).bit_length() + shape.chunk_bits + 2
    wide = {name: f"{bits}'({name})" for name in ("chunk", "within_chunk", number)}
    conditions = []
    for k, (chunks, pitch) in enumerate(zip(shape.chunks, shape.pitch, strict=True)):
        steps, place = f"{wide['within_chunk']}", f"{wide[number]} * {pitch}"
        if not shape.chunk_bits:
            equation = f"{steps} == {place}"
        elif shape.in_turn:
            equation = (
                f"{steps} * {chunks} + {wide['chunk']} * {pitch} == {place} && chunk < {chunks}"
            )
        else:
            equation = (
                f"{steps} + {wide['chunk']} * {shape.block * pitch} == {place} && "
                f"within_chunk < {shape.block * pitch}"
            )
        if pitch > 1:
            equation += f" && within_chunk % {pitch} == 0"
        conditions.append(f"({mode} != {k} || ({equation}))")
    model.claim("counts_chunks", f"!({valid}) || ({' && '.join(conditions)})")


def fact(model: Model, name: str, section: str, bits: int) -> str:
    """A fact of a section, in Verilog; 0 where the module is told no such fact."""
    return within(name, section, bits) if model.has(name) else "1'b0"


def takes_part(shape: LoaderShape | UnloaderShape, port: str, mode: str, root: str) -> str:
    """Whether a node sends, or receives, anything in a mode with a root, in Verilog."""
    if not any(shape.at_root):
        return f"{port}[{mode}]"
    own = within("position", mode, shape.facts.position_bits)
    return f"({by_value(shape.at_root, mode)} ? {root} == {own} : {port}[{mode}])"


def key_of(shape: LoaderShape | UnloaderShape, packet: str) -> str:
    """What a ROM of rows is asked for: the row of a packet and a chunk, of those of the form."""
    key, texts = shape.rows, []
    for start, packets, chunks in zip(key.starts, key.packet_bits, key.chunk_bits, strict=True):
        found = [f"{key.bits}'d{start}"]
        found += [f"{key.bits}'({packets}'({packet})) << {chunks}"] * (packets > 0)
        found += [f"{key.bits}'({chunks}'(word_chunk))"] * (chunks > 0)
        texts.append("(" + " | ".join(f"({each})" for each in found) + ")")
    *others, last = texts
    return "(" + "".join(f"mode == {k} ? {text} : " for k, text in enumerate(others)) + last + ")"


def full_beats(shape: LoaderShape | UnloaderShape) -> list[str]:
    """What `tkeep` is where the first flit of a beat is full, the first two, and so on."""
    size = shape.keep_bits // shape.beat
    return [f"{shape.keep_bits}'h{(1 << size * (k + 1)) - 1:x}" for k in range(shape.beat)]


def base_of(shape: LoaderShape | UnloaderShape, row: str, mode: str) -> str:
    """The address at which a chunk begins, as so many bits as addresses have."""
    size = shape.address_bits
    return f"{size}'({size}'({row}) << {by_value(shape.shifts, mode)})"
