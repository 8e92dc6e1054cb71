"""Declared registers and windows: what lies at which address of a bus.

Hardware, SystemRDL, manifest and drivers are made from it. Addresses count bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..toolchain.values import Choice

__all__ = ["BYTES", "DATA_BITS", "DIGEST_OFFSET", "IDENTIFICATION", "Access", "Field", "Register",
           "RegisterMap", "Window"]  # fmt: skip

#: Bits, and bytes, of a word of all buses; beats of bursts are as wide as flits.
DATA_BITS = 32
BYTES = DATA_BITS // 8

#: What the first register reads as: "toru".
IDENTIFICATION = 0x746F7275

#: Where every fabric says which one it is.
DIGEST_OFFSET = 0x30


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


@dataclass(frozen=True)
class Window:
    """The words of all nodes that the bus writes, or reads.

    Parameters
    ----------
    offset : int
        The address of the first bus word of node 0.
    stride : int
        Bytes from a node to the next.
    flits : int
        Flits of a node.
    flit_bytes : int
        Bytes from a flit to the next.
    """

    name: str
    offset: int
    access: Access
    meaning: str
    nodes: int
    stride: int
    flits: int
    flit_bytes: int


@dataclass(frozen=True)
class RegisterMap:
    """What lies at which address of the bus.

    A flit of more than 32 bits is several bus words, the low bits first, and begins at a multiple
    of a power of two.

    Parameters
    ----------
    windows : tuple of Window
        What nodes send, what they receive, and where tables are loaded the words of images.
    quarter_bits : int
        Bits of the address of a bus word within a quarter.
    flit_bits : int
        Bits of the number of a flit of a node.
    parts : int
        Bus words of a flit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2x2", "allgather"), max_flits=4)
    >>> fabric = tf.Fabric(program, width=48, bus="axi-lite")
    >>> sent, received = fabric.register_map.windows
    >>> sent.offset, sent.stride, sent.flits, sent.flit_bytes, received.flits
    (512, 128, 4, 8, 16)
    >>> fabric.register_map.register("length").offset
    16
    """

    registers: tuple[Register, ...]
    windows: tuple[Window, ...]
    quarter_bits: int
    flit_bits: int
    parts: int

    @property
    def address_bits(self) -> int:
        """Bits of the address of a bus word."""
        return self.quarter_bits + 2

    @property
    def size(self) -> int:
        """Bytes of the address space."""
        return BYTES << self.address_bits

    @property
    def flit_bytes(self) -> int:
        """Bytes from a flit to the next."""
        return BYTES << self.part_bits

    @property
    def part_bits(self) -> int:
        """Bits of the number of a bus word within a flit."""
        return (self.parts - 1).bit_length()

    def register(self, name: str) -> Register:
        """The register of a name."""
        return next(register for register in self.registers if register.name == name)

    def window(self, name: str) -> Window:
        """The window of a name."""
        return next(window for window in self.windows if window.name == name)
