"""Multiplexers for ECP5: tables joined by the wide multiplexers beside them.

An ECP5 joins two look-up tables by a multiplexer, PFUMX, and two such pairs by another one,
L6MUX21. So eight inputs take four tables, without a wire from one to another; cascades in branches
take five, and wires between three in a row. Synthesis does not find that by itself: it looks for
functions of so many inputs, whatever they are, which take all tables.

The select bits are those of cascades, so that nothing else depends on which of the forms there is.
"""

from ...rtl.branches import branches
from ...rtl.multiplexer import Multiplexer
from .column import Column, four, pair, passed

__all__ = ["multiplexer_body"]


def multiplexer_body(multiplexer: Multiplexer) -> str | None:
    """The module without its ports; None where its usual form is as good.

    Examples
    --------
    >>> body = multiplexer_body(Multiplexer(8, 16, branched=True))
    >>> body.count("LUT4"), body.count("PFUMX"), body.count("L6MUX21")
    (4, 2, 1)
    """
    column, count = Column(multiplexer.width), multiplexer.count
    sizes = branches(count) if multiplexer.branched else (count,)
    if len(sizes) == 1:
        return _cascade(column, count)
    return _branches(column, count) if 7 <= count <= 9 else None


def _cascade(column: Column, count: int) -> str:
    """One of three inputs or more, by the select bits y, x, z1, ..; of three, without x."""
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    if count == 3:
        f = column.join(pair(column, 0, y), passed(column, 2), x)
    elif count == 4:
        f = four(column, 0, y, z)
    elif count == 6:
        # A table more than below, but none behind another.
        last = column.join(passed(column, 4), passed(column, 5), y)
        f = column.join_pairs(four(column, 0, y, z), last, further[0])
    else:
        # With x = 0 it passes y, for the pair of a further stage to be told apart by it.
        first = [column.word(0), column.word(1), y, x]
        low = column.table(lambda a, b, y, x: (b if y else a) if x else y, *first)
        f = column.join(low, pair(column, 2, y), z)
        for k, stage in zip(range(4, count, 2), further, strict=False):
            words = [column.word(index) for index in range(k, min(k + 2, count))]
            f = column.table(_stage, f, stage, *words)
    return column.text([f"word[k] = {f}"])


def _stage(f: int, z: int, even: int, odd: int | None = None) -> int:
    """A further stage of a cascade."""
    if not z:
        return f
    return even if odd is None or not f else odd


def _branches(column: Column, count: int) -> str:
    """One of seven to nine inputs: of a branch of four, of one of two to four, or a last input.

    The select bits are y, x, z1 of the first branch, those of the other, and z.
    """
    ya, _, za, yb, xb, *others = (f"select[{k}]" for k in range(6 if count == 7 else 7))
    first = four(column, 0, ya, za)
    if count == 7:
        other = column.join(pair(column, 4, yb), passed(column, 6), others[0])
        f = column.join_pairs(first, other, "upper")
    elif count == 8:
        other = column.join(pair(column, 6, others[1]), pair(column, 4, yb), xb)
        f = column.join_pairs(first, other, "upper")
    else:
        both = column.join_pairs(first, four(column, 4, yb, others[0]), "upper")
        f = column.table(lambda f, z, a: a if z else f, both, others[1], column.word(8))
    # What of the second four inputs is selected: a table for all bits.
    terms = [xb, *others] if count < 9 else [xb, others[0]]
    return f"  wire upper = {' | '.join(terms)};\n" + column.text([f"word[k] = {f}"])
