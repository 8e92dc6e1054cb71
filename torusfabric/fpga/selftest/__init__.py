"""The self-test image: a fabric that tests itself on a board, and talks over a serial line.

`image` is what goes onto the board, `protocol` the other end of the line; neither is imported here,
because either is of use without the other.
"""

__all__ = ["BAUD"]

#: Bits a second of the serial line.
BAUD = 115200
