"""Declared registers: bits at an address of a bus, and the ports that they show or drive."""

from __future__ import annotations

from dataclasses import dataclass

from ..toolchain.values import Choice

__all__ = ["Access", "Field", "Register"]


class Access(Choice):
    """What the bus may do with a register or a window."""

    READ = "read"
    #: Reads give 0.
    WRITE = "write"
    READ_WRITE = "read-write"
    #: A 1 that is written clears a bit.
    CLEAR = "write-1-to-clear"


@dataclass(frozen=True)
class Field:
    """Some bits of a register.

    Parameters
    ----------
    low : int
        The lowest bit.
    port : str
        The port of the fabric that it shows or drives; empty if there is none.
    reset : int
        Its value after reset; of a constant, at all times.
    """

    name: str
    low: int
    width: int
    meaning: str
    port: str = ""
    reset: int = 0


@dataclass(frozen=True)
class Register:
    """A register of up to 32 bits.

    Parameters
    ----------
    offset : int
        Its address.
    """

    name: str
    offset: int
    access: Access
    meaning: str
    fields: tuple[Field, ...]

    @classmethod
    def of_port(cls, name: str, offset: int, access: Access, meaning: str) -> Register:
        """Return a register that is a port of the fabric."""
        return cls(name, offset, access, meaning, (Field("value", 0, 0, meaning, name),))
