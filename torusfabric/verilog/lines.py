"""Verilog on lines: lists of names and pins, blocks of statements, and decisions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from .syntax import condition, is_wild, labels, range_of

__all__ = ["LINE", "decision", "declared", "filled", "guarded", "indented", "wires"]

#: Characters that a statement may have on a line.
LINE = 96

#: Characters that lists of nets and pins may have on a line.
LIST = 98

#: The number of a node in the name of one of its ports.
NUMBER = re.compile(r"(?<=_)\d+(?=_|$)")


def declared(ports: Mapping[str, str]) -> Iterator[str]:
    """The lines of the declarations of ports, those of a node side by side.

    Examples
    --------
    >>> for line in declared({"clk": "input clk", "a_1": "input a_1", "b_1": "input b_1"}):
    ...     print(line)
      input clk,
      input a_1, input b_1
    """
    last = [*ports][-1]
    for _, each in groupby(ports, lambda name: NUMBER.findall(name) or name):
        names = [*each]
        yield from filled("  ", [ports[name] for name in names], "" if names[-1] == last else ",")


def filled(head: str, items: Sequence[str], end: str) -> list[str]:
    """A list behind a head, on as few lines as have room for it; each has at least one of it."""
    deeper = " " * (len(head) - len(head.lstrip()) + 2)
    lines, line, start = [], head, head
    for number, item in enumerate(items):
        piece = item + (end if number == len(items) - 1 else ",")
        if line != start and len(line) + len(piece) >= LIST:
            lines.append(line.rstrip())
            line = start = deeper
        line += f"{piece} "
    return [*lines, line.rstrip()]


def wires(indent: str, widths: Mapping[str, int]) -> Iterator[str]:
    """The declarations of nets, those of a width side by side."""
    for width in dict.fromkeys(widths.values()):
        nets = [net for net, each in widths.items() if each == width]
        yield from filled(f"{indent}wire {range_of(width)}", nets, ";")


def indented(lines: Iterable[str]) -> list[str]:
    """Lines a step further in."""
    return [f"  {part}" if part else part for line in lines for part in line.split("\n")]


def guarded(head: str, lines: Sequence[str]) -> list[str]:
    """Lines behind a head; in a block, unless there is one statement of one line.

    A condition within another one is in a block: an ``else`` belongs to the last ``if`` before it.
    """
    nested = bool(lines) and lines[0].startswith("if") and head.startswith(("if", "else"))
    if len(lines) == 1 and "\n" not in lines[0] and not nested:
        return (
            [f"{head} {lines[0]}"] if len(head) + len(lines[0]) < LINE else [head, f"  {lines[0]}"]
        )
    if (
        head.startswith("always")
        and len(lines) > 1
        and lines[0].startswith("if (")
        and (all(line.startswith("  ") for line in lines[1:]))
    ):
        return [head, *indented(lines)]
    return [f"{head} begin", *indented(lines), "end"]


def decision(test: str, cases: Sequence[tuple[tuple[str, ...] | None, list[str]]]) -> list[str]:
    """The lines of a decision between several: a case, or conditions where bits do not matter."""
    cases = [case for case in cases if case[0] != ()]
    if not any(is_wild(patterns) for patterns, _ in cases):
        lines = []
        for patterns, inner in cases:
            label = "\n".join(filled("", labels(patterns), ":"))
            lines += guarded(label, inner) if inner else [f"{label} ;"]
        if all(patterns is not None for patterns, _ in cases):
            lines.append("default: ;")
        return [f"case ({test})", *indented(lines), "endcase"]
    lines, head = [], ""
    for patterns, inner in cases:
        if patterns is None:
            return [*lines, *guarded("else", inner)] if inner else lines
        # What follows an empty statement is not for its case.
        lines += guarded(f"{head}if ({condition(test, patterns)})", inner or [";"])
        head = "else "
    return lines
