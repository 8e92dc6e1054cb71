"""The self-test image: a fabric that tests itself on a board, and the host's side of its line.

`image` is the gateware that goes onto the board, `client` the other end of the serial line; neither
is imported here, because either is of use without the other.
"""

__all__ = ["BAUD"]

#: Bits a second of the serial line.
BAUD = 115200
