"""Guests: small memories of messages that are stored in free words of larger ones, their *hosts*.

The user is `store_plan`. A block RAM has more words than most memories need. In a fabric with
several send maps (tables of the addresses of a message), a node has memories for each of them,
because the host computer writes a message before it chooses the mode. A memory of one send map can
be a guest in a memory of another one::

    address  | word            |
    0        | host            |
    ...      | ...             |
    base     | guest           |

A guest never needs the ports of its host at the same time:

- A run reads memories of one send map only.
- The host computer writes each word by all send maps at once. Therefore a memory can be a guest
  only at nodes where it has no word in common with its host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...program.fields import Action
from ...program.host_words import word_addresses
from ...topology import BoolArray, IntArray

if TYPE_CHECKING:
    from .memory_port import MemoryPort
    from .rows import NodeKinds

__all__ = ["BLOCK_WORDS", "Guest", "find_hosts", "guest_base"]

#: Words of a block RAM, as most devices have them.
BLOCK_WORDS = 512

#: Words from which on a memory is mostly a block RAM.
LEAST_HOST_WORDS = 33

#: The largest number of words of all nodes whose places are compared.
MOST_WORDS = 1 << 24

#: The costs of a guest whose host is read by another reader, of a memory that is no guest, and of
#: a guest in a memory that cannot be its host.
OTHER_READER, ALONE, NEVER = 1 << 10, 1 << 20, 1 << 21


class Guest(NamedTuple):
    """A memory of a node that is stored in another one, its host.

    Parameters
    ----------
    memory : int
        The number of the guest among the memories of the node.
    base : int
        Address of the first word of the guest in its host.
    """

    memory: int
    base: int


def find_hosts(kinds: NodeKinds, port: MemoryPort) -> IntArray:
    """Return the memory in which each memory is a guest, shape (kinds, memories); -1 for none.

    Nodes of a kind behave alike. A host has one guest, and is no guest itself.

    `port` is the memory port. Only a port that all nodes share writes by all send maps at once.
    """
    memories = kinds.rows.memories
    found = np.full((kinds.n_kinds, len(memories)), -1)
    # Memories that runs write, too, take no part.
    own = np.flatnonzero([memory.own and not memory.ports for memory in memories])
    several = len({memories[number].layout for number in own}) > 1
    if not (port.shared and several) or kinds.rows.program.by_offset:
        return found
    # Here, because few fabrics have several send maps, and the import takes a while.
    from scipy.optimize import linear_sum_assignment

    costs = _placement_costs(kinds, own)
    for kind in np.flatnonzero((costs < ALONE).any(axis=(1, 2))).tolist():
        guests = np.flatnonzero((costs[kind] < ALONE).any(axis=1))
        alone = np.full((len(guests), len(guests)), ALONE)
        chosen = linear_sum_assignment(np.hstack([costs[kind, guests], alone]))[1]
        placed = chosen < len(own)
        found[kind, own[guests[placed]]] = own[chosen[placed]]
    hosted = np.take_along_axis(found, np.maximum(found, 0), axis=1) >= 0
    return np.where((found >= 0) & hosted, -1, found)


def _placement_costs(kinds: NodeKinds, own: IntArray) -> IntArray:
    """Return the cost of each memory as a guest of each other one, shape (kinds, guests, hosts).

    Guests and hosts are the memories `own`, those of messages. The cost is `NEVER` if the memory
    cannot be a guest there. Hosts with low numbers are a little cheaper, so that kinds that could
    be alike are alike.
    """
    layout = np.array([kinds.rows.memories[number].layout for number in own])
    depth, shown = kinds.memory_depths[:, own], np.zeros((kinds.n_kinds, len(own)), bool)
    for kind, received in enumerate(kinds.received_memories):
        shown[kind] = np.isin(own, [*received])
    reads = _find_reads(kinds, own)
    guest, host = depth[:, :, None], depth[:, None, :]
    joint = guest_base(host, guest) + guest
    blocks = lambda words: -(-words // BLOCK_WORDS)
    fits = (
        (layout[:, None] != layout)
        & (guest > 0)
        & (host >= np.maximum(guest, LEAST_HOST_WORDS))
        & (blocks(joint) == blocks(host))
        & ~(shown[:, :, None] & shown[:, None, :])
        & (reads.sum(axis=2) == 1)[:, :, None]
        & (reads.sum(axis=2) == 1)[:, None, :]
    )
    fits &= ~_find_common_words(kinds, own, layout, fits.any(axis=0))
    same = (reads[:, :, None] & reads[:, None]).any(axis=3)
    costs: IntArray = np.where(fits, np.where(same, 0, OTHER_READER) + np.arange(len(own)), NEVER)
    return costs


def guest_base(host: IntArray, guest: IntArray) -> IntArray:
    """Return the address at which a memory of `guest` words begins, behind `host` words.

    It is a multiple of a power of two, so that no address needs an adder.
    """
    unit = 1 << np.ceil(np.log2(np.maximum(guest, 1))).astype(int)
    base: IntArray = -(-host // unit) * unit
    return base


def _find_reads(kinds: NodeKinds, own: IntArray) -> BoolArray:
    """Return True for each reader that reads each of the memories `own` at each kind of nodes.

    The shape is (kinds, memories, readers).
    """
    found = np.zeros((kinds.n_kinds, len(own), kinds.rows.sources.n_readers), bool)
    for reader in range(found.shape[2]):
        field = kinds.rows.field(Action.MEMORY, reader)
        if field is not None:
            bits = np.where(field.values >= 0, 1 << np.maximum(field.values, 0), 0)
            read = np.bitwise_or.reduce(bits, axis=0)[kinds.variants[:, 0, 0]]
            found[:, :, reader] = read[:, None] >> own & 1
    return found


def _find_common_words(
    kinds: NodeKinds, own: IntArray, layout: IntArray, wanted: BoolArray
) -> BoolArray:
    """Return True for two memories that have a common word of the host, shape (kinds, own, own).

    The first memory of a pair is the guest. The host computer writes the word into both of them at
    once. `own` are the numbers of the memories, `layout` those of their send maps, and `wanted` the
    pairs in question. It is also True for pairs with too many words to compare.
    """
    program = kinds.rows.program
    numbers = [form.layout for form in program.forms]
    counts = [program.part(numbers.index(each)).send_words for each in layout.tolist()]
    found = np.ones((kinds.n_kinds, len(own), len(own)), bool)
    places: dict[tuple[int, int], IntArray] = {}

    def memory_of_word(send_map: int, count: int) -> IntArray:
        if (send_map, count) not in places:
            memory, address = word_addresses(
                program,
                received=False,
                form=numbers.index(send_map),
                length=program.flits,
                words=np.arange(count),
            )
            places[send_map, count] = np.where(address >= 0, memory, -1)
        return places[send_map, count]

    for a, b in np.argwhere(wanted).tolist():
        count = min(counts[a], counts[b])
        if count * len(kinds.kind_of) <= MOST_WORDS:
            here, there = (memory_of_word(int(layout[each]), count) for each in (a, b))
            # The port may write a word without a place anywhere, if the host writes it at all.
            both = (((here == own[a]) | (here < 0)) & (there == own[b])).any(axis=1)
            found[:, a, b] = np.bincount(kinds.kind_of, both, kinds.n_kinds) > 0
    return found
