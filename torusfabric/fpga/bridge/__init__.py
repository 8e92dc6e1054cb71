"""The bridge: a fabric on a board, behind a serial line to a computer.

`gateware` speaks the protocol of LiteX's UARTBone; `board` is the computer's side of it.
Neither is imported here, because either is of use without the other.
"""

__all__ = ["BAUD"]

#: Bits a second of the serial line.
BAUD = 115200
