"""The words that loops read, side by side: scattered words are gathered first.

A loop over adjacent words is one that a compiler makes vectors of. What several loops read of the
same words is gathered once, and only if some of these have changed.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...topology import IntArray
from .connections import Sub
from .expressions import mask, size_of, type_of
from .layout import Layout

__all__ = ["Frame", "Loop", "Reads", "Span"]

#: What names are made for: those of a function are numbered anew, so that modules share functions.
NAME = re.compile(r"\b(?:x?(?:piece|input|memory)_\d+_\d+|(?:[otv]|start|depth|rows)\d+)\b")


class Span(NamedTuple):
    """Words that a loop works out.

    Parameters
    ----------
    number : int
        What they are: a piece by its number among all, or what is gathered, with numbers beyond.
    start, size : int
        Where they begin, and the bytes of a word.
    """

    number: int
    start: int
    size: int


@dataclass
class Loop:
    """A unit of stepping: pieces of a module, gathered words, or writes into a memory.

    Parameters
    ----------
    reads : set of int
        The numbers of what it reads, of memories ``-1 - number``.
    data : list
        What goes with the text: offsets, arrays, or memories.
    """

    function: int
    count: int
    spans: list[Span]
    reads: set[int]
    data: list[Any]
    memory: int = -1


class Frame:
    """The declarations before a loop, and the data that goes with them.

    Attributes
    ----------
    heads : list of str
        The declarations, in C++.
    data : list
        As of a `Loop`.
    """

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.data: list[Any] = []

    def add(self, declaration: str, value: Any) -> None:
        """Declare something, with ``$`` where the value of the data stands."""
        self.heads.append(declaration.replace("$", f"T[{len(self.data)}]"))
        self.data.append(value)

    def add_pointer(self, kind: str, name: str, value: Any, base: str = "") -> None:
        """Declare a pointer to data, or to what lies at an offset from a base."""
        self.add(f"{kind} *__restrict {name} = ({kind} *)({base}$);", value)

    def text(self, lines: list[str], outcome: str, count: int) -> str:
        """A loop as a function; of a single instance it is none."""
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


class Reads:
    """The words that loops read, and the loops that gather scattered ones.

    Parameters
    ----------
    loops : list of Loop
        Where what is gathered is appended, before whatever reads it.

    Attributes
    ----------
    functions : list of str
        The text of each function.
    end : int
        How many bytes there are of pieces, constants, and what is gathered.
    constants : dict of (int, int) to int
        Where each constant of so many bytes lies.
    """

    def __init__(self, layout: Layout, loops: list[Loop]) -> None:
        self._layout, self._loops = layout, loops
        self.end = layout.end
        self.constants: dict[tuple[int, int], int] = {}
        self.functions: list[str] = []
        self._functions: dict[str, int] = {}
        self._gathered: dict[tuple[Any, ...], Span] = {}

    def function(self, text: str) -> int:
        """The number of a function of this text, whatever its names."""
        names: dict[str, str] = {}
        text = NAME.sub(lambda found: names.setdefault(found[0], f"n{len(names)}"), text)
        if text not in self._functions:
            self._functions[text] = len(self.functions)
            self.functions.append(text)
        return self._functions[text]

    def _constant(self, value: int, size: int) -> int:
        """Return the place of a constant."""
        key = value, size
        if key not in self.constants:
            at = -(-self.end // size) * size
            self.constants[key] = at
            self.end = at + size
        return self.constants[key]

    def read(self, name: str, sub: Sub, frame: Frame) -> tuple[str, set[int]]:
        """Declare how a leaf is read.

        Returns the statement in the loop, if there is one, and the numbers of what is read.
        """
        _, width, source, instance, shift, value = sub
        numbers = {*np.unique(source).tolist()}
        behind = numbers - {-1}
        size = max([self._layout.size[k] for k in behind], default=size_of(width))
        at = np.empty(len(source), np.int64)
        for k in numbers:
            here = source == k
            if k >= 0:
                at[here] = self._layout.addresses(k, instance[here])
            else:
                values, back = np.unique(value[here], return_inverse=True)
                at[here] = np.array([self._constant(int(v), size) for v in values])[back.ravel()]
        of = max((self._layout.connections.piece(k).width for k in behind), default=width)
        low, step = int(shift[0]), int(at[-1] - at[-2]) if len(at) > 1 else 0
        start = int(at[0])
        if step not in (0, size) or (np.diff(at) != step).any() or (shift != low).any():
            made = self._gather(at, shift, (width, of, size), behind)
            start, low, size, of, step, behind = made.start, 0, made.size, width, 1, {made.number}
        kind, from_kind, cut = type_of(width), f"const u{8 * size}", _cut(low, width, of)
        if not step:
            frame.add(f"const {kind} {name} = ({kind})(*({from_kind} *)(now + $){cut});", start)
            return "", behind
        frame.add_pointer(from_kind, f"x{name}", start, "now + ")
        return f"const {kind} {name} = ({kind})(x{name}[k]{cut});", behind

    def _gather(
        self, at: IntArray, shift: IntArray, form: tuple[int, int, int], behind: set[int]
    ) -> Span:
        """Gather bits side by side, of words anywhere, each with its lowest bit.

        The form is how many bits, of words of how many, and the bytes of these.
        """
        width, of, size = form
        key = at.tobytes(), shift.tobytes(), form
        if key in self._gathered:
            return self._gathered[key]
        kind, frame = type_of(width), Frame()
        start = -(-self.end // 64) * 64
        self.end = start + len(at) * size_of(width)
        frame.add_pointer(kind, "o", start, "next + ")
        if (at % size == 0).all() and (shift == shift[0]).all():
            frame.heads.append(f"const u{8 * size} *x = (const u{8 * size} *)now;")
            frame.add_pointer("const u32", "i", (at // size).astype(np.uint32))
            word = f"x[i[k]]{_cut(int(shift[0]), width, of)}"
        else:
            frame.add_pointer("const u32", "i", at.astype(np.uint32))
            frame.add_pointer("const u8", "s", shift.astype(np.uint8))
            word = f"any_word(now + i[k]) >> s[k] & {mask(width):#x}ull"
        text = frame.text([f"o[k] = ({kind})({word});"], "0", len(at))
        number = len(self._layout.connections.pieces) + len(self._gathered)
        made = self._gathered[key] = Span(number, start, size_of(width))
        self._loops.append(Loop(self.function(text), len(at), [made], behind, frame.data))
        return made


def _cut(low: int, width: int, of: int) -> str:
    """Bits of a word of so many."""
    return (f" >> {low}" if low else "") + (f" & {mask(width):#x}ull" if low + width < of else "")
