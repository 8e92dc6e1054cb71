"""The bridge: access from a computer to a fabric on a board, over a serial line.

::

    computer                          board
    ConnectedBoard -> BusAccess  ~~~  Gateware -> UartBone -> Wishbone -> fabric

The protocol is that of LiteX's UARTBone (``uart_bone``). Modules of the computer are ``board`` and
``bus_access``; modules of the board are ``gateware`` and ``uart_bone``. ``simulated`` replaces the
board by Amaranth's simulator. The two sides are not imported here, because each is useful alone.
"""

__all__ = ["BAUD"]

#: Bits a second of the serial line.
BAUD = 115200
