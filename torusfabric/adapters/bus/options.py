"""The buses, and the option that puts a fabric behind one."""

from ...contract.registers import BYTES
from ...toolchain.values import Choice

__all__ = ["OPTION", "SETTINGS", "Bus"]


class Bus(Choice):
    """A bus that a fabric can stand behind.

    Examples
    --------
    >>> Bus("axi-lite").address_unit, Bus("wishbone").address_unit
    (1, 4)
    """

    #: Wishbone B4, classic cycles; an address counts words.
    WISHBONE = "wishbone"
    #: AXI4-Lite; an address counts bytes.
    AXI_LITE = "axi-lite"
    #: AXI4 for windows, with bursts, and AXI4-Lite for registers.
    AXI4 = "axi4"

    @property
    def bursts(self) -> bool:
        """Whether windows have a port of their own, with bursts."""
        return self is Bus.AXI4

    @property
    def address_unit(self) -> int:
        """Bytes that an address counts."""
        return BYTES if self is Bus.WISHBONE else 1


OPTION = "--bus: put the host port behind a bus: registers, and windows onto the memories\n"

#: The values of the option.
SETTINGS = {"bus": {"choices": tuple(map(str, Bus))}}
