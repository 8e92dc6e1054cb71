"""Words of packets: which chunk each belongs to, and how far it is from where that begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Model

if TYPE_CHECKING:
    from ...rtl.streams.words import WordShape

__all__ = ["add_words", "counts_places"]


def counts_places(shape: WordShape) -> bool:
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
    model : Model
    shape : WordShape
    number, mode : str
        The number of the word in its packet, and its mode.
    valid : str
        When the module has to count.
    """
    chunk = "chunk" if shape.chunk_bits else "0"
    counted = counts_places(shape)
    if shape.divisor_bits is not None:
        _split_words(model, shape, number)
        return
    model.wire("word_chunk", chunk, max(shape.chunk_bits, 1))
    model.wire("word_within", "within" if counted else number, shape.within_bits)
    if not counted:
        return
    bits = shape.index_bits + max(shape.pitch).bit_length() + shape.chunk_bits + 2
    wide = {name: f"{bits}'({name})" for name in ("chunk", "within", number)}
    conditions = []
    for k, (chunks, pitch) in enumerate(zip(shape.chunks, shape.pitch, strict=True)):
        steps, place = f"{wide['within']}", f"{wide[number]} * {pitch}"
        if not shape.chunk_bits:
            equation = f"{steps} == {place}"
        elif shape.in_turn:
            equation = (
                f"{steps} * {chunks} + {wide['chunk']} * {pitch} == {place} && chunk < {chunks}"
            )
        else:
            equation = (
                f"{steps} + {wide['chunk']} * {shape.block * pitch} == {place} && "
                f"within < {shape.block * pitch}"
            )
        if pitch > 1:
            equation += f" && within % {pitch} == 0"
        conditions.append(f"({mode} != {k} || ({equation}))")
    model.claim("counts_chunks", f"!({valid}) || ({' && '.join(conditions)})")
