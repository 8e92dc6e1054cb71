"""Multiplexers for ECP5: tables joined by the wide multiplexers beside them.

An ECP5 joins two look-up tables by a multiplexer, PFUMX, and two such pairs by another one,
L6MUX21: one of four inputs takes two tables, without a wire from one to the other. Synthesis does
not find that by itself: it looks for functions of so many inputs, whatever they are, which take all
tables.

A register takes what a table gives in its own place, but what a wide multiplexer gives by a wire.
So an out-port, which has a register behind it, ends in a table.

The select bits are those of cascades, so that nothing else depends on which of the forms there is.
"""

from collections.abc import Sequence

from ...rtl.cascade import branch_bits, branches
from ...rtl.multiplexer import Multiplexer
from .column import Column, four, pair, pair_or_nothing, passed

__all__ = ["multiplexer_body"]


def multiplexer_body(multiplexer: Multiplexer) -> str | None:
    """The module without its ports; None where its usual form is as good.

    Examples
    --------
    >>> body = multiplexer_body(Multiplexer(7, 16, branched=True))
    >>> body.count("LUT4"), body.count("PFUMX")
    (4, 1)
    """
    column, count = Column(multiplexer.width), multiplexer.count
    if not multiplexer.branched:
        f = _joined(column, count) if count in (3, 4, 6) else _cascade(column, count)
    elif count == 6:
        f = _cascade(column, count)
    elif 7 <= count <= 9:
        f = _branches(column, count)
    else:
        return None
    return column.text([f"word[k] = {f}"])


def _joined(column: Column, count: int) -> str:
    """One of three, four or six inputs, with no table behind another."""
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    if count == 3:
        return column.join(pair(column, 0, y), passed(column, 2), x)
    if count == 4:
        return four(column, 0, y, z)
    last = column.join(passed(column, 4), passed(column, 5), y)
    return column.join_pairs(four(column, 0, y, z), last, further[0])


def _cascade(column: Column, count: int) -> str:
    """One of five inputs or more, by the select bits y, x, z1, .. of a cascade."""
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    # With x = 0 it passes y, for the pair of a further stage to be told apart by it.
    first = [column.word(0), column.word(1), y, x]
    low = column.table(lambda a, b, y, x: (b if y else a) if x else y, *first)
    f = column.join(low, pair(column, 2, y), z)
    for k, stage in zip(range(4, count, 2), further, strict=False):
        words = [column.word(index) for index in range(k, min(k + 2, count))]
        f = column.table(_stage, f, stage, *words)
    return f


def _stage(f: int, z: int, even: int, odd: int | None = None) -> int:
    """A further stage of a cascade."""
    if not z:
        return f
    return even if odd is None or not f else odd


def _branches(column: Column, count: int) -> str:
    """One of seven to nine inputs: of a branch of four, of one of two to four, or a last input."""
    select = [f"select[{k}]" for k in range(len(branch_bits(count, 0)))]
    first, other = branches(count)
    a = _branch(column, 0, first, select[:3])
    b = _branch(column, first, other, select[3:-1])
    words = [a, b, column.word(count - 1)]
    return column.table(lambda a, b, s, z: s if z else a | b, *words, select[-1])


def _branch(column: Column, first: int, count: int, select: Sequence[str]) -> str:
    """One of two to four inputs, or 0, by the select bits y, x and z1 of a branch."""
    y, x, *others = select
    low = pair_or_nothing(column, first, y, x)
    if count == 2:
        return low
    high = passed(column, first + 2) if count == 3 else pair(column, first + 2, y)
    return column.join(low, high, *others)
