"""Collectives: who holds what before, and who is owed what after.

A *block* is the unit of data. Blocks are numbered; `Blocks` maps the numbers to what they mean. A
message is cut into ``chunks`` equal parts, so a block is (origin, chunk), or (origin, destination,
chunk) where every destination gets a message of its own.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import InputError

__all__ = ["COLLECTIVES", "OPERATORS", "Blocks", "Collective", "parse_collective"]

#: Every collective with the names the papers use for it.
COLLECTIVES = {
    "broadcast": ("one-to-all", "one-to-all-broadcast", "single-node-broadcast"),
    "allgather": ("gossip", "gossiping", "multinode-broadcast", "multinode-broadcasting",
                  "all-to-all-broadcast"),
    "scatter": ("single-node-scatter", "single-node-scattering", "one-to-all-personalized"),
    "gather": ("single-node-gather", "single-node-gathering"),
    "alltoall": ("all-to-all", "total-exchange", "multinode-scatter", "multinode-scattering",
                 "all-to-all-personalized"),
    "reduce": ("reduction", "single-node-accumulation"),
    "reduce-scatter": ("multinode-reduction", "multinode-accumulation"),
    "allreduce": ("all-reduce",),
}  # fmt: skip

ROOTED = {"broadcast", "scatter", "gather", "reduce"}
PERSONAL = {"scatter", "alltoall", "reduce-scatter"}
REDUCING = {"reduce", "reduce-scatter", "allreduce"}

#: How contributions of a reduction are combined: commutative and associative on W-bit words.
OPERATORS = ("add", "min", "max", "and", "or", "xor")


@dataclass(frozen=True)
class Collective:
    """A collective communication.

    Parameters
    ----------
    kind : str
        A key of `COLLECTIVES`.
    root : int or None
        The node that broadcasts, scatters, gathers or reduces; None where no node is special.
    """

    kind: str
    root: int | None = None

    @property
    def rooted(self):
        """Whether one node is special."""
        return self.kind in ROOTED

    @property
    def personal(self):
        """Whether a block has a destination of its own: (origin, destination, chunk)."""
        return self.kind in PERSONAL

    @property
    def reducing(self):
        """Whether what is delivered is a combination of contributions."""
        return self.kind in REDUCING

    def blocks(self, topology, chunks):
        """The blocks of this collective on a topology, a `Blocks`."""
        return Blocks(self, topology.nodes, chunks)

    def to_json(self):
        """The collective as an entry of a schedule file."""
        return {"kind": self.kind} | ({"root": self.root} if self.rooted else {})

    def __str__(self):
        return self.kind + (f" from {self.root}" if self.root else "")


def parse_collective(name, *, root=None, nodes=None):
    """The collective a user names.

    Parameters
    ----------
    name : str
        Its name or an alias of it, in any case, with blanks or dashes.
    root : int, optional
        The special node of a rooted collective (default 0).
    nodes : int, optional
        The number of nodes of the topology; the root must be one of them.

    Raises
    ------
    InputError
        If there is no such collective, or the root does not fit.
    """
    key = str(name).strip().lower().replace(" ", "-").replace("_", "-")
    for kind, aliases in COLLECTIVES.items():
        if key == kind or key in aliases:
            collective = Collective(kind)
            break
    else:
        raise InputError(f"Collective must be one of {', '.join(COLLECTIVES)}, not {name!r}")
    if not collective.rooted:
        if root is not None:
            raise InputError(f"Root must be left out for {kind}, which has none, not {root!r}")
        return collective
    root = 0 if root is None else root
    if not isinstance(root, int | np.integer) or isinstance(root, bool):
        raise InputError(f"Root must be a node number, not {root!r}")
    if root < 0 or (nodes is not None and root >= nodes):
        raise InputError(f"Root must be a node from 0 to {(nodes or 1) - 1}, not {root}")
    return replace(collective, root=int(root))


@dataclass(frozen=True)
class Blocks:
    """The numbered blocks of a collective.

    Without a destination, block (origin, chunk) has number ``origin_index * chunks + chunk``; with
    one, ``(origin_index * nodes + destination) * chunks + chunk``. The origin index is the origin's
    node number, or 0 where the root is the only origin.

    Parameters
    ----------
    collective : Collective
    nodes, chunks : int
    """

    collective: Collective
    nodes: int
    chunks: int

    @property
    def single_origin(self):
        """Whether the root is the only origin."""
        return self.collective.kind in ("broadcast", "scatter")

    @cached_property
    def count(self):
        """Number of blocks."""
        origins = 1 if self.single_origin else self.nodes
        return origins * self.chunks * (self.nodes if self.collective.personal else 1)

    def encode(self, origin, chunk, destination=None):
        """Block numbers, elementwise."""
        index = np.zeros_like(np.asarray(origin)) if self.single_origin else np.asarray(origin)
        if self.collective.personal:
            index = index * self.nodes + destination
        return index * self.chunks + chunk

    def origin(self, block):
        """Origins of blocks, elementwise."""
        if self.single_origin:
            return np.full_like(np.asarray(block), self.collective.root)
        per_origin = self.chunks * (self.nodes if self.collective.personal else 1)
        return np.asarray(block) // per_origin

    def destination(self, block):
        """Destinations of personal blocks, elementwise."""
        return np.asarray(block) // self.chunks % self.nodes

    def chunk(self, block):
        """Chunks of blocks, elementwise."""
        return np.asarray(block) % self.chunks

    def holder(self, block):
        """The only node that holds each block at the beginning: its origin."""
        return self.origin(block)

    def owed_to(self, block):
        """The node that must hold each block at the end, -1 where all nodes must.

        Of a reduction, the node is owed the complete sum that the block is a contribution to.
        """
        if self.collective.personal:
            return self.destination(block)
        owed = self.collective.root if self.collective.kind in ("gather", "reduce") else -1
        return np.full_like(np.asarray(block), owed)

    def name(self, block):
        """A block as in a schedule file: (origin, chunk) or (origin, destination, chunk)."""
        middle = (int(self.destination(block)),) if self.collective.personal else ()
        return (int(self.origin(block)), *middle, int(self.chunk(block)))

    def parse(self, entry):
        """The number of a block written as in a schedule file.

        Raises
        ------
        InputError
            If the entry is no block of this collective.
        """
        size = 3 if self.collective.personal else 2
        valid = isinstance(entry, list | tuple) and len(entry) == size
        if not valid or not all(type(x) is int and x >= 0 for x in entry):
            form = "[origin, destination, chunk]" if size == 3 else "[origin, chunk]"
            raise InputError(f"Block must be {form}, not {entry!r}")
        origin, destination, chunk = entry[0], entry[1] if size == 3 else 0, entry[-1]
        only_origin = self.collective.root if self.single_origin else None
        if max(origin, destination) >= self.nodes or chunk >= self.chunks:
            raise InputError(
                f"Block must lie within {self.nodes} nodes and {self.chunks} chunks, not {entry!r}"
            )
        if only_origin is not None and origin != only_origin:
            raise InputError(f"Block must have the root {only_origin} as its origin, not {entry!r}")
        return int(self.encode(origin, chunk, destination))
