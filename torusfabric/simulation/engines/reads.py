"""Reads of loops: declarations of the words that a loop reads, and *gather* loops.

A compiler vectorizes a loop over adjacent words. If the words that a loop reads are scattered, a
gather loop first copies them side by side. Loops that read the same scattered words share one
gather loop, which runs only if one of these words has changed.

The *arena* is the byte array of all simulated values. A *piece* is a part of a register or of an
output, with one word in the arena for each instance (see `elaborated`, `layout`).
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...topology import IntArray
from .connections import InputPart
from .expressions import cpp_type, mask, native_bytes
from .layout import ArenaLayout

__all__ = ["LoopHead", "Loop", "ReadDeclarations", "Span"]

#: Names that depend on the module. They are renumbered within each function, so that equal
#: functions of different modules become one.
VARIABLE_NAME = re.compile(
    r"\b(?:x?(?:piece|input|memory)_\d+_\d+|(?:[otv]|start|depth|rows)\d+)\b"
)


class Span(NamedTuple):
    """Adjacent words of the arena that one loop computes, one word for each instance.

    The arena is the byte array of all simulated values. The words belong to one *piece*, a part of
    a register or an output, or are copies that a gather loop has put side by side.

    Parameters
    ----------
    number : int
        Number of the piece; copied words have numbers beyond those of all pieces.
    start, size : int
        Byte offset of the first word in the arena, and bytes per word.
    """

    number: int
    start: int
    size: int


@dataclass
class Loop:
    """One loop over instances of a module: the call of a C++ function with its data.

    The loop does one of three things. It computes *pieces* (parts of registers or outputs, one word
    for each instance). Or it *gathers* words: it copies scattered words of the arena side by side
    for other loops. Or it executes the write ports of a memory. The arena is the byte array of all
    simulated values.

    Parameters
    ----------
    function : int
        Index of the C++ function.
    count : int
        Number of instances.
    spans : list of Span
        Words that the loop computes, one span for each piece; none for a loop that writes a memory.
    reads : set of int
        Numbers of the spans that the loop reads; memory k has the number ``-1 - k``.
    data : list
        Values to which the function refers by index: byte offsets in the arena, arrays of numbers,
        or ``("memory", number)`` for one bit range of all words of a memory.
    memory : int
        Number of the memory that the loop writes; -1 for none.
    """

    function: int
    count: int
    spans: list[Span]
    reads: set[int]
    data: list[Any]
    memory: int = -1


class LoopHead:
    """The declarations at the head of the C++ function of a loop, and the data they refer to.

    Why: the text of the function contains only indices into the data, and no addresses. Fabrics of
    any size can therefore share the compiled function.

    Attributes
    ----------
    heads : list of str
        Declarations in C++.
    data : list
        Value for each index: a byte offset in the arena (the array of all simulated values), an
        array of numbers, or a memory; see `Loop`.
    """

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.data: list[Any] = []

    def declare(self, declaration: str, value: Any) -> None:
        """Add a C++ declaration that uses `value`, which is appended to the data of the loop.

        In C++, the data are the array ``T``. A ``$`` in `declaration` becomes the array entry with
        `value`, such as ``T[2]``.
        """
        self.heads.append(declaration.replace("$", f"T[{len(self.data)}]"))
        self.data.append(value)

    def declare_pointer(self, kind: str, name: str, value: Any, base: str = "") -> None:
        """Declare a C++ pointer to an array of numbers, or to simulated values in the arena.

        Parameters
        ----------
        kind : str
            C++ type of the words, such as ``const u32``.
        name : str
            Name of the pointer.
        value : array, int or tuple
            The array; or a byte offset from `base`; or ``("memory", number)``.
        base : str
            Start of an addition in C++, such as ``now +``; empty for an array or a memory.
        """
        self.declare(f"{kind} *__restrict {name} = ({kind} *)({base}$);", value)

    def function_text(self, lines: list[str], outcome: str, count: int) -> str:
        """Return the C++ text of a loop function, from its argument list on.

        Parameters
        ----------
        lines : list of str
            Body of the loop, for instance ``k``.
        outcome : str
            C++ expression to return: ``any`` if the lines set this variable, otherwise ``0``.
        count : int
            Number of instances. For one instance, the body is executed once, without a loop.
        """
        loop = "const size_t k = 0; {" if count == 1 else "for (size_t k = first; k < end; k++) {"
        return "\n".join([
            "(LOOP_ARGUMENTS) {",
            *(f"    {head}" for head in self.heads),
            "    int any = 0;",
            f"    {loop}",
            *(f"        {line}" for line in lines),
            "    }",
            f"    return {outcome};",
            "}",
        ])  # fmt: skip


class ReadDeclarations:
    """The C++ declarations of the words that loops read, and the gather loops of a model.

    A gather loop copies scattered words side by side before another loop reads them. The *arena* is
    the byte array of all simulated values.

    Parameters
    ----------
    layout : ArenaLayout
        Addresses of registers and outputs in the arena.
    loops : list of Loop
        List to which gather loops are appended, each before the loops that read its words.

    Attributes
    ----------
    functions : list of str
        Text of each different C++ function.
    end : int
        Bytes of the arena so far: registers and outputs, constants, and copied words.
    constants : dict of (int, int) to int
        (value, bytes per word) of a constant -> its byte offset in the arena.
    """

    def __init__(self, layout: ArenaLayout, loops: list[Loop]) -> None:
        self._layout, self._loops = layout, loops
        self.end = layout.end
        self.constants: dict[tuple[int, int], int] = {}
        self.functions: list[str] = []
        self._functions: dict[str, int] = {}
        self._gathered: dict[tuple[Any, ...], Span] = {}

    def function_index(self, text: str) -> int:
        """Return the index in `functions` of a C++ function, which is added if it is new.

        `text` is the text of the function. Functions whose texts differ only in the names of
        variables share an index.
        """
        names: dict[str, str] = {}
        text = VARIABLE_NAME.sub(lambda found: names.setdefault(found[0], f"n{len(names)}"), text)
        if text not in self._functions:
            self._functions[text] = len(self.functions)
            self.functions.append(text)
        return self._functions[text]

    def _constant_offset(self, value: int, size: int) -> int:
        """Return the byte offset in the arena of the constant `value`, which is added if it is new.

        The word of the constant has `size` bytes.
        """
        key = value, size
        if key not in self.constants:
            at = -(-self.end // size) * size
            self.constants[key] = at
            self.end = at + size
        return self.constants[key]

    def declare_read(self, name: str, sub: InputPart, frame: LoopHead) -> tuple[str, set[int]]:
        """Declare a value that a loop reads, one word for each instance of the loop.

        If the words are scattered in the arena (the byte array of all simulated values), a gather
        loop is added, which copies them side by side; the loop then reads the copies.

        Parameters
        ----------
        name : str
            C++ variable for the value.
        sub : InputPart
            Driver of the value in each instance of the loop.
        frame : LoopHead
            Head of the loop, to which the declarations are added.

        Returns
        -------
        tuple of (str, set of int)
            The C++ statement inside the loop that sets the variable (empty if all instances read
            the same word, because the declaration then sets it), and the numbers of the spans that
            it reads.
        """
        _, width, source, instance, shift, value = sub
        numbers = {*np.unique(source).tolist()}
        behind = numbers - {-1}
        size = max([self._layout.size[k] for k in behind], default=native_bytes(width))
        at = np.empty(len(source), np.int64)
        for k in numbers:
            here = source == k
            if k >= 0:
                at[here] = self._layout.piece_addresses(k, instance[here])
            else:
                values, back = np.unique(value[here], return_inverse=True)
                at[here] = np.array([self._constant_offset(int(v), size) for v in values])[
                    back.ravel()
                ]
        of = max((self._layout.connections.piece_at(k).width for k in behind), default=width)
        low, step = int(shift[0]), int(at[-1] - at[-2]) if len(at) > 1 else 0
        start = int(at[0])
        if step not in (0, size) or (np.diff(at) != step).any() or (shift != low).any():
            made = self._add_gather_loop(at, shift, (width, of, size), behind)
            start, low, size, of, step, behind = made.start, 0, made.size, width, 1, {made.number}
        kind, from_kind, cut = cpp_type(width), f"const u{8 * size}", _bit_suffix(low, width, of)
        if not step:
            frame.declare(f"const {kind} {name} = ({kind})(*({from_kind} *)(now + $){cut});", start)
            return "", behind
        frame.declare_pointer(from_kind, f"x{name}", start, "now + ")
        return f"const {kind} {name} = ({kind})(x{name}[k]{cut});", behind

    def _add_gather_loop(
        self, at: IntArray, shift: IntArray, form: tuple[int, int, int], behind: set[int]
    ) -> Span:
        """Return the span with the copies that a gather loop makes of scattered words.

        The loop is added, unless an earlier call has added one for the same words.

        Parameters
        ----------
        at, shift : ndarray of int, shape (instances,)
            Byte offset in the arena of each word to copy, and the lowest bit to copy from it.
        form : tuple of (int, int, int)
            Number of bits to copy from each word, bits per word, and bytes per word.
        behind : set of int
            Numbers of the spans that hold the words to copy.
        """
        width, of, size = form
        key = at.tobytes(), shift.tobytes(), form
        if key in self._gathered:
            return self._gathered[key]
        kind, frame = cpp_type(width), LoopHead()
        start = -(-self.end // 64) * 64
        self.end = start + len(at) * native_bytes(width)
        frame.declare_pointer(kind, "o", start, "next + ")
        if (at % size == 0).all() and (shift == shift[0]).all():
            frame.heads.append(f"const u{8 * size} *x = (const u{8 * size} *)now;")
            frame.declare_pointer("const u32", "i", (at // size).astype(np.uint32))
            word = f"x[i[k]]{_bit_suffix(int(shift[0]), width, of)}"
        else:
            frame.declare_pointer("const u32", "i", at.astype(np.uint32))
            frame.declare_pointer("const u8", "s", shift.astype(np.uint8))
            word = f"any_word(now + i[k]) >> s[k] & {mask(width):#x}ull"
        text = frame.function_text([f"o[k] = ({kind})({word});"], "0", len(at))
        number = len(self._layout.connections.pieces) + len(self._gathered)
        made = self._gathered[key] = Span(number, start, native_bytes(width))
        self._loops.append(Loop(self.function_index(text), len(at), [made], behind, frame.data))
        return made


def _bit_suffix(low: int, width: int, of: int) -> str:
    """Return the C++ text that, behind a word, selects bits ``low`` to ``low + width - 1`` of it.

    The word has `of` bits.

    Examples
    --------
    >>> _bit_suffix(8, 4, 32), _bit_suffix(0, 32, 32)
    (' >> 8 & 0xfull', '')
    """
    return (f" >> {low}" if low else "") + (f" & {mask(width):#x}ull" if low + width < of else "")
