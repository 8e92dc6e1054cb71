"""Declarations of the registers and windows that a bus sees, with their byte addresses.

Hardware, the SystemRDL file, the manifest and the drivers are made from these declarations.

A *window* is a range of addresses behind which words of the nodes lie. The address space has four
*quarters* of equal size: the registers, the words to send, the received words, and the words of
images for tables that can be loaded. An address of a window has these bits, the highest first::

    | quarter |  node  |    flit     |    part     | byte |
    | 2 bits  |        |  flit_bits  |    p bits   |  2   |
              |<------------ quarter_bits -------->|

A *part* is one of the bus words of a flit that is wider than the bus. Its number has p =
`RegisterMap.word_select_bits` bits, none if a flit fits into one bus word.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..toolchain.values import Choice

__all__ = ["BYTES", "DATA_BITS", "DIGEST_OFFSET", "IDENTIFICATION", "Access", "Field", "Register",
           "RegisterMap", "Window"]  # fmt: skip

#: Width of a bus word in bits and in bytes, the same for all buses. Beats of AXI4 bursts may be
#: wider: they have the width of a flit.
DATA_BITS = 32
BYTES = DATA_BITS // 8

#: The value of the first register: "toru" in ASCII, for drivers that look for a fabric.
IDENTIFICATION = 0x746F7275

#: Byte address of the digest, which identifies program and width of the fabric.
DIGEST_OFFSET = 0x30


class Access(Choice):
    """The accesses of the bus that a register or a window allows, such as reads only."""

    READ = "read"
    #: Reading returns 0.
    WRITE = "write"
    READ_WRITE = "read-write"
    #: Writing a 1 clears the bit, writing a 0 leaves it.
    CLEAR = "write-1-to-clear"


@dataclass(frozen=True)
class Field:
    """A group of adjacent bits in a register.

    Parameters
    ----------
    low : int
        Number of the lowest bit.
    width : int
        Number of bits; 0 stands for the width of `port`, which is filled in later.
    port : str
        Port of the fabric that the field shows or drives; empty for a field without a port.
    reset : int
        Value after reset. A constant field always has this value.
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
        Byte address.
    """

    name: str
    offset: int
    access: Access
    meaning: str
    fields: tuple[Field, ...]

    @classmethod
    def from_port(cls, name: str, offset: int, access: Access, meaning: str) -> Register:
        """Return a register with a single field, which shows or drives the port of the same name.

        `offset` is its byte address, `access` says if the bus may read or write it, and `meaning`
        is its purpose on one line.
        """
        return cls(name, offset, access, meaning, (Field("value", 0, 0, meaning, name),))


@dataclass(frozen=True)
class Window:
    """A range of bus addresses, through which the bus writes or reads words of all nodes.

    A *flit* is here one word of the host port; if it is wider than the bus, it takes several bus
    words.

    Parameters
    ----------
    offset : int
        Byte address of the first bus word of node 0.
    stride : int
        Bytes from the first word of a node to the first word of the next node.
    flits : int
        Number of flits that the window has for each node.
    flit_bytes : int
        Bytes from the beginning of a flit to the beginning of the next flit.
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
    """All registers and windows of a fabric, with their addresses.

    A window is a range of addresses for the memories of nodes. The address space has four quarters:
    registers, words to send, received words, and words for tables that can be loaded.

    A flit of more than 32 bits occupies several bus words, the lowest bits first. It begins at an
    address that is a multiple of a power of two.

    Parameters
    ----------
    registers : tuple of Register
        Registers, all in the first quarter.
    windows : tuple of Window
        The windows ``send`` and ``receive``, and where tables can be loaded the window of images.
    quarter_bits : int
        Bits of the number of a bus word within a quarter. It consists of node, flit, and part: the
        number of a bus word in its flit.
    flit_bits : int
        Bits of the field ``flit`` of an address, which numbers the flits of one node.
    parts : int
        Bus words per flit.

    Examples
    --------
    A flit of 48 bits takes two bus words, that is, 8 bytes. A node sends 4 flits, and receives 16.

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
        """Bits of an address that counts bus words; its two highest bits select the quarter."""
        return self.quarter_bits + 2

    @property
    def size_bytes(self) -> int:
        """Number of bytes in the whole address space, the four quarters together."""
        return BYTES << self.address_bits

    @property
    def flit_bytes(self) -> int:
        """Bytes from one flit to the next in a window: a power of two, 4 or more."""
        return BYTES << self.word_select_bits

    @property
    def word_select_bits(self) -> int:
        """Address bits that select one of the bus words of a flit; 0 if a flit is one bus word."""
        return (self.parts - 1).bit_length()

    def register(self, name: str) -> Register:
        """Return the register with this name."""
        return next(register for register in self.registers if register.name == name)

    def window(self, name: str) -> Window:
        """Return the window with this name."""
        return next(window for window in self.windows if window.name == name)
