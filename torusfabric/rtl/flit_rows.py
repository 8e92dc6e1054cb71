"""Rows of flits: the layout of memories whose port moves several flits in a cycle.

A *beat* is the R successive flits of a block that a port moves in one cycle. In this module, a
*row* is one word of a memory, in which the flits of a beat lie side by side. A run still addresses
single flits. With R = 4 and flits at successive addresses (pitch 1), the addresses of the flits
are::

    row  | flit 3 | flit 2 | flit 1 | flit 0 |
    0    |      3 |      2 |      1 |      0 |
    1    |      7 |      6 |      5 |      4 |

With a pitch P, P blocks alternate: block b has the addresses b, b + P, b + 2 P, .. Rows then take
turns as well. With R = 4 and P = 2, block 0 lies in the even rows and block 1 in the odd ones::

    row  | flit 3 | flit 2 | flit 1 | flit 0 |
    0    |      6 |      4 |      2 |      0 |
    1    |      7 |      5 |      3 |      1 |

A row must not hold flits of two blocks, so R must divide the length of blocks; see
`unsupported_beat_reason`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from amaranth.hdl import Cat, Value

from ..errors import InputError
from ..toolchain.values import parse_non_negative_int
from ..topology import IntArray
from .memories import WritePort, resize

if TYPE_CHECKING:
    from ..program import Program
    from ..program.address_map import AddressMap, Located

__all__ = ["AUTO", "FlitRows", "unsupported_beat_reason", "divide_by_beats", "check_beat",
           "choose_beat", "locate_blocks", "received_pitch", "exceeded_limit",
           "round_up_to_beats"]  # fmt: skip

#: The value of `beat` that leaves the choice to the fabric.
AUTO = "auto"

#: The most bits of a word of a port.
MOST_WORD_BITS = 1024


class FlitRows(NamedTuple):
    """The layout of flits in a memory whose words (*rows*) hold several flits of one block.

    Parameters
    ----------
    beat : int
        Flits of a row, a power of two; a port moves so many in a cycle.
    pitch : int
        Distance of the addresses of two successive flits of a block, a power of two if rows have
        several flits.

    Examples
    --------
    With pitch 4, the flits of a block have the addresses 0, 4, 8 and 12, and share row 0. The flit
    with address 5 is the second in row 1.

    >>> import numpy as np
    >>> row, flit = FlitRows(beat=4, pitch=4).split_address(np.array([0, 1, 4, 5, 16, 17]))
    >>> row.tolist(), flit.tolist()
    ([0, 1, 0, 1, 4, 5], [0, 0, 1, 1, 0, 0])
    """

    beat: int = 1
    pitch: int = 1

    @property
    def flit_select_bits(self) -> int:
        """Number of address bits that select a flit within its row; 0 if rows have one flit."""
        return self.beat.bit_length() - 1

    def n_rows(self, words: int) -> int:
        """Return the number of words (rows) of a memory that holds `words` flits."""
        if self.beat == 1:
            return words
        return -(-words // (self.beat * self.pitch)) * self.pitch

    def split_address(self, address: IntArray) -> tuple[IntArray, IntArray]:
        """Return two arrays for the addresses of flits: row, and position in the row."""
        turn, low = address // self.pitch, address % self.pitch
        return turn // self.beat * self.pitch + low, turn % self.beat

    def turn_address(self, address: IntArray, turn: IntArray) -> IntArray:
        """Return the addresses of flits in rows that are rotated by `turn` positions.

        The flit at position `turn` of a row moves to position 0.

        Examples
        --------
        >>> FlitRows(beat=4, pitch=1).turn_address(np.array([4, 5, 6, 7]), np.array(1)).tolist()
        [7, 4, 5, 6]
        """
        _, flit = self.split_address(address)
        return address + ((flit - turn) % self.beat - flit) * self.pitch

    def split_address_signal(self, address: Value) -> tuple[Value, Value]:
        """Return two signals for the address of a flit: its row, and its position in the row.

        The second signal has 0 bits if `beat` is 1.
        """
        if self.beat == 1:
            return address, address[:0]
        low = self.pitch.bit_length() - 1
        address = resize(address, max(len(address), low + self.flit_select_bits + 1))
        row = Cat(address[:low], address[low + self.flit_select_bits :])
        return row, address[low : low + self.flit_select_bits]

    def write_flit(self, port: WritePort) -> WritePort:
        """Return the signals of a write port that write one flit into a word of several flits.

        `port` has the address, data and enable of the flit. The flit is repeated at all positions
        in the word, and one write enable for each position selects the position to write.
        """
        if self.beat == 1:
            return port
        row, flit = self.split_address_signal(port.address)
        enable = Cat(*(port.enable & (flit == k) for k in range(self.beat)))
        return WritePort(row, port.data.replicate(self.beat), enable)


def locate_blocks(
    program: Program, form: int, mapped: AddressMap, positions: IntArray, parts: int
) -> Located:
    """Return the memory and the first address of each block of a message, at some nodes.

    Parameters
    ----------
    program : Program
        The program of the core.
    form : int
        The number of the form, among all modes.
    mapped : AddressMap
        The map of the form from the parts of a message to memories and addresses, for words that
        are sent, or for words that are received.
    positions : ndarray of int, shape (nodes,)
        The position of each node in its group, the set of nodes in which the collective runs.
    parts : int
        Number of parts: of origins, destinations or offsets, by the collective.

    Returns
    -------
    memory, base : ndarray of int, shape (nodes, parts, chunks)
        Memory and first address. The address is -1 if the node has no such block.
    """
    part = program.part(form)
    number, chunk = np.arange(parts)[:, None], np.arange(part.schedule.chunks)[None]
    share, chunk = np.divmod(chunk, part.layout.part_chunks)
    return mapped.locate(positions[:, None, None], number + share, chunk)


def received_pitch(program: Program, form: int) -> int:
    """Return the distance between the addresses of successive flits of a received block.

    `form` is the number of the form in the program.
    """
    of_form = program.forms[form]
    stored = of_form.receive_map.memories_at(np.arange(of_form.groups.n_map_rows))
    pitches = {of_form.loop.pitch_of(k) for k in stored if not program.memories[k].own} or {1}
    assert len(pitches) == 1, "words of a form lie as far apart in all memories"
    return pitches.pop()


def _common_divisor(program: Program, form: int, pitch: int) -> int:
    """Return the largest number that divides all block lengths and first addresses of a form.

    Lengths and addresses are counted in flits. If R divides the result, a word of R flits never
    holds flits of two blocks. The result is 0 if there is a single block, at address 0. `form` is
    the number of the form, and `pitch` the distance between the addresses of successive flits of a
    received block.
    """
    of_form, part = program.forms[form], program.part(form)
    blocks, collective = part.schedule.blocks, part.schedule.collective
    positions = np.arange(of_form.groups.n_map_rows)
    by_root = of_form.any_root and collective.single_origin and collective.personal
    own = np.array([each.own for each in program.memories])
    divisor = part.block_flits if part.schedule.chunks > 1 else 0
    for mapped, parts in (
        (of_form.send_map, blocks.messages_per_origin),
        (of_form.receive_map, len(positions) if by_root else blocks.messages_per_receiver),
    ):
        memory, base = locate_blocks(program, form, mapped, positions, parts)
        flits = np.where(own[memory], base, base // pitch)
        divisor = int(np.gcd.reduce(flits[base >= 0], initial=divisor))
    return divisor


def unsupported_beat_reason(program: Program, beat: int) -> str | None:
    """Return the reason why a program does not allow a beat, as text, or None if it allows it.

    Parameters
    ----------
    program : Program
        The program, whose blocks must consist of whole beats.
    beat : int
        Flits of a beat, a power of two.

    Examples
    --------
    Blocks of 6 flits consist of beats of 2 flits, but not of beats of 4.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "alltoall"), flits=6)
    >>> unsupported_beat_reason(program, 2)
    >>> print(unsupported_beat_reason(program, 4))
    Beat must be at most 2 for 6-flit blocks, not 4. Choose flits or chunks that make blocks a \
multiple of 4, or max_flits.
    """
    if beat == 1:
        return None
    forms = range(len(program.forms))
    pitches = {received_pitch(program, form) for form in forms}
    if len(pitches) > 1:
        return (
            f"Beat must be 1 for collectives that lie differently in memories, not {beat}. "
            "Build a fabric for each of them."
        )
    (pitch,) = pitches
    if pitch.bit_count() > 1:
        return (
            f"Beat must be 1 for received flits {pitch} addresses apart, which is no power of two, "
            f"not {beat}. Choose another algorithm."
        )
    for form in forms:
        divisor = _common_divisor(program, form, pitch)
        if divisor % beat:
            advice = f"Choose flits or chunks that make blocks a multiple of {beat}, or max_flits."
            if program.any_length:
                advice = f"Use program.by_beats({beat})."
            return (
                f"Beat must be at most {divisor & -divisor} for "
                f"{program.part(form).block_flits}-flit blocks, not {beat}. {advice}"
            )
    return None


def divide_by_beats(program: Program, width: int, beat: int) -> Program:
    """Return the program, changed so that it divides messages into chunks of whole beats.

    A beat is the number of flits that a port moves in a cycle.

    Parameters
    ----------
    program : Program
        The unchanged program; see `Program.by_beats`.
    width : int
        Bits of a flit.
    beat : int
        Flits of a word of a port.

    Raises
    ------
    InputError
        If the beat is no power of two, or the program does not allow it.
    """
    check_beat(program, width, beat)
    program = program.by_beats(beat)
    fault = unsupported_beat_reason(program, beat)
    if fault is not None:
        raise InputError(fault)
    return program


def check_beat(program: Program, width: int, beat: int) -> None:
    """Check that a beat, the flits that a port moves in a cycle, is possible.

    It must be a power of two. A message must have that many flits, and the word of a port must not
    be too wide.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    width : int
        Bits of a flit.
    beat : int
        Flits of a beat.

    Raises
    ------
    InputError
        If the beat is not possible.
    """
    if beat < 1 or beat.bit_count() != 1:
        raise InputError(f"Beat must be auto or a power of two, not {beat}")
    reason = exceeded_limit(program, width, beat)
    if reason is not None:
        raise InputError(f"Beat must be {reason}, not {beat}")


def round_up_to_beats(flits: int, beat: int) -> int:
    """Return a number of flits, rounded up to whole beats.

    Examples
    --------
    >>> round_up_to_beats(5, 4), round_up_to_beats(8, 4)
    (8, 8)
    """
    return -(-flits // beat) * beat


def choose_beat(program: Program, width: int, beat: int | str) -> tuple[int, Program]:
    """Return the beat as a number, and the program, changed if this beat requires it.

    A beat is the number of flits that a port moves in a cycle. See `divide_by_beats`.

    Parameters
    ----------
    program : Program
        The unchanged program.
    width : int
        Bits of a flit.
    beat : int or "auto"
        A power of two; "auto" is 1.

    Raises
    ------
    InputError
        If the program does not allow the beat.
    """
    number = 1 if isinstance(beat, str) and beat == AUTO else parse_non_negative_int("Beat", beat)
    return number, program if number == 1 else divide_by_beats(program, width, number)


def exceeded_limit(program: Program, width: int, beat: int) -> str | None:
    """Return the limit that a beat exceeds, as text, or None if the beat is possible.

    The text follows "Beat must be" in an error message: "at most the 16 flits of a message".

    Parameters
    ----------
    program, width, beat
        The same as in `check_beat`.
    """
    if beat == 1:
        return None
    if width % 8:
        return f"1 for flits of {width} bits, which are no whole bytes"
    if beat > program.flits:
        return f"at most the {program.flits} flits of a message"
    if beat * width > MOST_WORD_BITS:
        return (
            f"at most {max(MOST_WORD_BITS // width, 1)}, so that words have up to "
            f"{MOST_WORD_BITS} bits"
        )
    return None
