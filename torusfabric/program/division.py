"""Division by a constant: how many cycles it takes, and what each of them finds."""

__all__ = ["TABLE_BITS", "division_cycles", "table_digits"]

#: Bits of the key of a table that finds a digit of a quotient: four look-up tables of four inputs
#: and what chooses among them.
TABLE_BITS = 6


def division_cycles(count: int, divisor: int) -> int:
    """Cycles to divide a number by a constant.

    Parameters
    ----------
    count : int
        Numbers there are, from 0.
    divisor : int

    Returns
    -------
    int
        0 for a power of two, which divides the bits. Else a cycle for each digit that a table
        finds, or for each bit of the quotient by subtraction, whichever are fewer.

    Examples
    --------
    >>> [division_cycles(64, divisor) for divisor in (4, 3, 25, 100)]
    [0, 1, 1, 0]
    >>> division_cycles(1024, 3), division_cycles(1024, 100)
    (2, 4)
    """
    if count <= divisor or not divisor & (divisor - 1):
        return 0
    return len(table_digits(count, divisor)) or _quotient_bits(count, divisor)


def table_digits(count: int, divisor: int) -> tuple[int, ...]:
    """Bits of a number that each table takes, the upper ones first; none where subtraction does.

    The key of a table is what the one before has left, and the bits that it takes.

    Examples
    --------
    >>> table_digits(1024, 3), table_digits(48, 24)
    ((6, 4), ())
    """
    bits, rest = (count - 1).bit_length(), (divisor - 1).bit_length()
    if rest >= TABLE_BITS:
        return ()
    digits = [min(bits, TABLE_BITS)]
    while sum(digits) < bits:
        digits.append(min(bits - sum(digits), TABLE_BITS - rest))
    return tuple(digits) if len(digits) < _quotient_bits(count, divisor) else ()


def _quotient_bits(count: int, divisor: int) -> int:
    """Bits of the largest quotient."""
    return ((count - 1) // divisor).bit_length()
