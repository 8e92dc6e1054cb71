"""What was written down of a fabric as waves for WaveDrom."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Line", "waves"]

#: Columns that are always shown, at the beginning and after whatever happens.
AFTER = 3

#: Characters of a value for which a column has room.
ROOM = 5

#: A column that stands for cycles that are left out.
GAP = None


class Line(NamedTuple):
    """What a line shows.

    Parameters
    ----------
    values : sequence of int
        In each cycle.
    decimal : bool
        Whether values are written so, not as hexadecimal numbers.
    counts : bool
        Whether it may change with every edge.
    """

    name: str
    bits: int
    values: Sequence[int]
    decimal: bool = False
    counts: bool = False


def waves(cycles: Sequence[int], lines: Sequence[Line]) -> dict[str, Any]:
    """The waves of some lines.

    The first line has the number of each cycle. Cycles are left out in which nothing changes but
    what counts, nor did so soon before or does so next.

    Parameters
    ----------
    cycles : sequence of int
        The number of each cycle.

    Examples
    --------
    >>> start = Line("start", 1, [1] + [0] * 9)
    >>> count = Line("cycles", 32, [7, *range(9)], decimal=True, counts=True)
    >>> for line in waves(range(-1, 9), [start, count])["signal"]:
    ...     print(line)
    {'name': 'cycle', 'wave': '=====|=', 'data': ['-1', '0', '1', '2', '3', '8']}
    {'name': 'clk', 'wave': 'p....|.'}
    {'name': 'start', 'wave': '10...|.'}
    {'name': 'cycles', 'wave': '=====|=', 'data': ['7', '0', '1', '2', '3', '8']}
    """
    columns = _columns([line.values for line in lines if not line.counts], len(cycles))
    numbers = [None if k is GAP else str(cycles[k]) for k in columns]
    shown = [_values("cycle", numbers), {"name": "clk", "wave": "p" + _held(columns[1:])}]
    longest = 0
    for line in lines:
        if line.bits == 1:
            shown.append({"name": line.name, "wave": "".join(_bits(line.values, columns))})
            continue
        written = "d" if line.decimal else "#x"
        texts = [None if k is GAP else format(line.values[k], written) for k in columns]
        shown.append(_values(line.name, texts))
        longest = max([longest, *(len(text) for text in texts if text)])
    return {"signal": shown, "config": {"hscale": max(1, -(-longest // ROOM))}}


def _columns(steady: Sequence[Sequence[int]], count: int) -> list[int | None]:
    """The cycles that are shown, with gaps between."""
    changes = [0, *(k for k in range(1, count) if any(line[k] != line[k - 1] for line in steady))]
    kept = {count - 1}
    for k in changes:
        kept.update(range(max(k - 1, 0), min(k + AFTER + 1, count)))
    columns: list[int | None] = []
    for k in range(count):
        # A gap takes a column, too, and so does not save one cycle.
        if k in kept or {k - 1, k + 1} <= kept:
            columns.append(k)
        elif columns[-1] is not GAP:
            columns.append(GAP)
    return columns


def _held(columns: Sequence[int | None]) -> str:
    """The wave of what does not change."""
    return "".join("|" if k is GAP else "." for k in columns)


def _bits(values: Sequence[int], columns: Sequence[int | None]) -> Iterator[str]:
    """The wave of one bit."""
    before = None
    for k in columns:
        if k is GAP:
            yield "|"
            continue
        yield "." if values[k] == before else str(values[k])
        before = values[k]


def _values(name: str, texts: Sequence[str | None]) -> dict[str, Any]:
    """A line of values."""
    wave, data, before = "", [], None
    for text in texts:
        if text is None:
            wave, before = wave + "|", None
        elif text == before:
            wave += "."
        else:
            wave, before = wave + "=", text
            data.append(text)
    return {"name": name, "wave": wave, "data": data}
