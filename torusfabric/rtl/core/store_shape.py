"""The structure of the store of a node: its memories, its readers, and the pools of memories.

`store_plan` finds a `StoreShape` for each family of nodes, and `store` builds the module from it;
see there for the terms.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..flit_rows import FlitRows
from .node_module import NodeMultiplexer
from .places import Bit
from .store_guests import Guest

__all__ = ["AddressSource", "BankArrivals", "Bank", "BankCopy", "Pool", "PoolAccess",
           "Reader", "StoreShape"]  # fmt: skip


@dataclass(frozen=True)
class AddressSource:
    """The source of an address of a memory during a run, in the module of a node.

    Either the sequencer sends the address to all nodes (`column`), or the node adds a first address
    of its own, which differs from row to row, and a word counter: the number of the word in the
    row.

    Parameters
    ----------
    column : int or None
        The input of the module for an address of the sequencer, as a number; None if the node
        computes the address.
    first : tuple of Bit
        The sources of the bits of the first address; no bits for a memory of one word.
    counter : int or None
        The input for the word counter, as a number; None if rows have one word.
    early : bool
        True if the node registers the sum of first address and word counter. False if the address
        must act in the cycle in which the table of the node shows the first address.
    lag : tuple of Bit
        The sources of the bits of the *lag*, in a core with writable tables: cycles by which the
        address follows the word counter.
    """

    column: int | None = None
    first: tuple[Bit, ...] = ()
    counter: int | None = None
    early: bool = True
    lag: tuple[Bit, ...] = ()


@dataclass(frozen=True)
class BankCopy:
    """One copy of the memories of a bank, and the address by which it is read.

    Memories of a node that are written at the same addresses form a bank. A bank is stored more
    than once if readers need different addresses in the same row. The *memory port* of a node is
    the port by which the words of its memories are read from outside, for example through a host
    port.

    Parameters
    ----------
    address : AddressSource or None
        The address at which the program reads the copy; None if only the memory port reads it.
    shown : bool
        True if the memory port reads the copy.
    """

    address: AddressSource | None
    shown: bool


@dataclass(frozen=True)
class BankArrivals:
    """Arriving words that a bank stores in a run: those from links of one length.

    A bank is one memory, or several with common addresses. Words from longer links arrive later in
    the row, so each length of links has its own strobe and address.

    Parameters
    ----------
    late : tuple of Bit
        The sources of the bits of a number, which is 0 in rows in which the bank stores no such
        words. Otherwise the number selects one of `strobes`, counted from 1, as the write enable.
    strobes : tuple of int
        The inputs of the module for strobes of the sequencer, as numbers: strobe 3 is the input
        ``valid_3``. There is one strobe. Only a core with writable tables has more, because there
        the length of the path can differ from row to row.
    address : AddressSource
        The write address.
    codes : tuple of (tuple of Bit)
        For each memory of the bank, the sources of the select bits of its multiplexer of words.
    exact : bool
        True if the node subtracts the number `late` from the address. The word counter has gone on
        by `late` words when a word arrives.
    """

    late: tuple[Bit, ...]
    strobes: tuple[int, ...]
    address: AddressSource
    codes: tuple[tuple[Bit, ...], ...]
    exact: bool = False


@dataclass(frozen=True)
class Bank:
    """Memories side by side that are read and written at common addresses.

    Parameters
    ----------
    members : tuple of int
        The numbers of these memories within the node.
    size : int
        Words of each section (the part of a memory that one run uses), rounded up to a power of
        two.
    depth : int
        Words of each section that are used.
    own : bool
        True if the bank holds the words that the node sends: the memory port then writes the bank.
    copies : tuple of BankCopy
        The copies of the bank, with equal words and a read port each. The memory port reads at most
        one of them.
    words : tuple of NodeMultiplexer
        For each member, the multiplexer of the arriving words that it stores, without select bits.
    arrivals : tuple of BankArrivals
        The arriving words that the bank stores in a run, one entry for each length of links.
    rows : FlitRows
        The layout of flits in the words of a copy that the memory port writes or reads.
    guests : tuple of Guest
        Memories of other send maps that are stored behind the words of the bank.
    """

    members: tuple[int, ...]
    size: int
    depth: int
    own: bool
    copies: tuple[BankCopy, ...]
    words: tuple[NodeMultiplexer, ...]
    arrivals: tuple[BankArrivals, ...]
    rows: FlitRows
    guests: tuple[Guest, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows of a section, rounded up to a power of two; see `rows`."""
        return self.rows.n_rows(self.size)

    def rows_of(self, copy: int) -> FlitRows:
        """Return the layout of flits in the words of copy number `copy`.

        A word has several flits if the memory port moves several in a cycle, and one flit if only
        the program reads the copy.
        """
        return self.rows if self.own or self.copies[copy].shown else FlitRows()


@dataclass(frozen=True)
class PoolAccess:
    """An access by which readers read words of a pool in a run, see `Pool`.

    Parameters
    ----------
    bank : int
        The largest bank that it reads, as an index into `StoreShape.banks`.
    address : AddressSource
        The address of the flit in its bank.
    base : tuple of Bit
        The sources of the bits of the first word of this bank in a section of the columns.
    """

    bank: int

    address: AddressSource
    base: tuple[Bit, ...]


@dataclass(frozen=True)
class Pool:
    """Banks that share R memories, the *columns*, because runs touch equal flits of all of them.

    A run has up to R *accesses* in a cycle, all of which read, or all write, flits with the same
    position f in their rows. Access number k uses column (f + k) mod R, so that the accesses find
    different columns. The memory port accesses a whole row of one bank, which is one word of each
    column.

    A bank with turn t is *rotated*: its flit f lies in column (f + t) mod R. Two banks with rows of
    4 flits and the turns 0 and 1::

        column  |  3  |  2  |  1  |  0  |
        bank 0  | f 3 | f 2 | f 1 | f 0 |
        bank 1  | f 2 | f 1 | f 0 | f 3 |

    Bank b of received words has turn b, and its words that arrive are access b. Banks of sent words
    that no run reads together can have the same turn t, and access t reads them.

    If the rows of all blocks are full, and no words are combined, banks of sent words have turn 0
    instead, so that the memory port needs no circuit that rotates rows. Each reader k has access k,
    and reads flit (f + k) mod R in place of flit f. The flits of a row then arrive rotated by k;
    `Core.locate_words` tells where they are.

    Parameters
    ----------
    banks : tuple of int
        The banks, as indices into `StoreShape.banks`, the largest first.
    bases : tuple of int
        The first word of each bank in a section of the columns, a multiple of the size of the bank.
    turns : tuple of int
        The turn of each bank.
    size : int
        Words of a section, rounded up to a power of two.
    depth : int
        Words of a section that are used.
    counter : int
        The input for the word counter, which has the position f, as a number.
    accesses : tuple of PoolAccess
        The accesses of a pool of sent words, at most R.
    """

    banks: tuple[int, ...]
    bases: tuple[int, ...]
    turns: tuple[int, ...]
    size: int
    depth: int
    counter: int
    accesses: tuple[PoolAccess, ...] = ()


@dataclass(frozen=True)
class Reader:
    """A reader: the circuit that passes to an injection port, in each row, a word of one memory.

    An injection port is an input of the router for words from the memories of the node.

    Parameters
    ----------
    inputs : tuple of (int, int)
        The memory and the copy that each input of the multiplexer reads: ``(2, 0)`` is copy 0 of
        memory 2. An input for the identity word, which leaves the result of an operator unchanged,
        is not listed.
    choice : NodeMultiplexer
        The multiplexer that selects among these words. The positions of its words are indices into
        `inputs`.
    accesses : tuple of (tuple of Bit)
        For each input, the sources of the bits of the access by which the reader reads a pool; no
        bits for a memory that is in no pool.
    """

    inputs: tuple[tuple[int, int], ...]
    choice: NodeMultiplexer
    accesses: tuple[tuple[Bit, ...], ...] = ()


@dataclass(frozen=True)
class StoreShape:
    """The structure of the store (memories and readers) of a node, equal at all nodes of a family.

    Parameters
    ----------
    banks : tuple of Bank
        The memories. Memories that are written and read alike form one bank.
    readers : tuple of Reader
        The readers: each passes the word of one memory per row.
    injections : tuple of (tuple of int)
        For each injection port (an input of the router for words of memories), the readers whose
        words are combined, as indices into `readers`.
    received : tuple of int
        The numbers of the memories that the memory port reads: those with received words.
    injection_delay : int
        Cycles from the word of a reader to the injection port. An operator between them needs these
        cycles.
    port_reader : int or None
        The reader whose multiplexer also serves the memory port between runs.
    pools : tuple of Pool
        The banks that share memories.
    turns : int
        The number of different rotations with which the flits of a row arrive, see `Pool`.
    """

    banks: tuple[Bank, ...]
    readers: tuple[Reader, ...]
    injections: tuple[tuple[int, ...], ...]
    received: tuple[int, ...]
    injection_delay: int
    port_reader: int | None = None
    pools: tuple[Pool, ...] = ()
    turns: int = 1
