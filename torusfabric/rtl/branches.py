"""Out-ports of many inputs: cascades side by side, for fewer tables in a row.

A cascade has as many tables in a row as it has stages. So from five inputs on, an out-port has two
*branches*, and a last input::

    f = z ? s : (a | b)                 a and b: what the branches pass

A branch passes 0 when all its select bits are 0. It is a cascade, or has branches itself. Five
inputs have two tables in a row rather than three, seven have three rather than four, of as many
tables; from eight on it takes up to two tables a bit more than a cascade would, to 29 inputs. Six
inputs would take one more and be no faster.

No cascade has more than three stages, for synthesis looks through those that it keeps: beside a
longer one it builds a second, faster tree, of more tables than the cascade has.
"""

from collections.abc import Sequence

from amaranth.hdl import Mux, Value

from .cascade import Keep, cascade, lut_count, select_bits, unmarked

__all__ = ["branch_bits", "branch_luts", "branched_cascade", "branches"]


def branches(count: int) -> tuple[int, ...]:
    """The inputs of each branch of an out-port, or of a branch, of so many; a last one is in none.

    Examples
    --------
    One number: there are no branches.

    >>> [branches(count) for count in (4, 5, 6, 7, 8, 9, 15)]
    [(4,), (2, 2), (6,), (4, 2), (4, 3), (4, 4), (8, 6)]
    """
    if count < 5 or count == 6:
        return (count,)
    first = 2 * ((count + 1) // 4)
    return first, count - 1 - first


def branch_luts(count: int) -> int:
    """4-input look-up tables a bit for so many inputs.

    Examples
    --------
    >>> [branch_luts(count) for count in (1, 2, 5, 8, 9, 15)]
    [0, 1, 3, 5, 5, 9]
    """
    sizes = branches(count)
    return lut_count(count) if len(sizes) == 1 else sum(map(branch_luts, sizes)) + 1


def branch_bits(count: int, index: int, *, idles: bool = False) -> list[int]:
    """The select bits that make one of so many inputs pass; parameters as of `select_bits`.

    Returns
    -------
    list of int
        Without branches those of `select_bits`. Else those of each branch, and z of the last input.

    Examples
    --------
    >>> [branch_bits(5, index) for index in range(5)]
    [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
    """
    sizes = branches(count)
    if len(sizes) == 1:
        return select_bits(count, index, idles=idles)
    bits: list[int] = []
    for size in sizes:
        inside = 0 <= index < size
        bits += [bit * inside for bit in branch_bits(size, index % size, idles=True)]
        index -= size
    return [*bits, int(index == 0)]


def branched_cascade(
    inputs: Sequence[Value],
    bits: Sequence[Value],
    width: int,
    keep: Keep = unmarked,
    *,
    idles: bool = False,
) -> Value:
    """The input that is selected; parameters as of `cascade`, select bits as of `branch_bits`."""
    sizes = branches(len(inputs))
    if len(sizes) == 1:
        return cascade(inputs, bits, width, keep, idles=idles)
    passed, at, bit = [], 0, 0
    for size in sizes:
        used = len(branch_bits(size, 0, idles=True))
        of_branch = inputs[at : at + size], bits[bit : bit + used]
        passed.append(keep(branched_cascade(*of_branch, width, keep, idles=True)))
        at, bit = at + size, bit + used
    return Mux(bits[-1], inputs[-1], passed[0] | passed[1])
