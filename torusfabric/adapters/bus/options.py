"""`Bus`, the choice of the bus through which a processor reaches a fabric; the option ``--bus``."""

from ...contract.registers import BYTES
from ...toolchain.values import Choice

__all__ = ["OPTION", "SETTINGS", "Bus"]


class Bus(Choice):
    """A bus through which a processor can reach a fabric.

    Examples
    --------
    AXI4-Lite addresses count bytes, Wishbone addresses count words of four bytes.

    >>> Bus("axi-lite").address_unit_bytes, Bus("wishbone").address_unit_bytes
    (1, 4)
    """

    #: Wishbone B4, classic cycles; an address counts words.
    WISHBONE = "wishbone"
    #: AXI4-Lite; an address counts bytes.
    AXI_LITE = "axi-lite"
    #: Two ports: AXI4 with bursts for windows, and AXI4-Lite for registers.
    AXI4 = "axi4"

    @property
    def has_bursts(self) -> bool:
        """True for AXI4: windows have a port with bursts, beside the port of the registers."""
        return self is Bus.AXI4

    @property
    def address_unit_bytes(self) -> int:
        """Bytes from one bus address to the next: 1, or 4 if addresses count words of 32 bits."""
        return BYTES if self is Bus.WISHBONE else 1


OPTION = """
--bus: Put the host port behind this bus: registers, and windows onto the memories. Default:
    no bus.
"""

#: Values of the option.
SETTINGS = {"bus": {"choices": tuple(map(str, Bus))}}
