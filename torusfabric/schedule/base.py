"""What all schedules have in common.

A `Schedule` says, as a plain immutable value, which message travels along which path in which
round. There are three ways to write one: a `Pattern` (oblivious forwarding), a `Table`
(translation-invariant; a `SumTable` where nodes keep their sums) and `Rounds` (explicit paths);
what several groups of nodes do alike is `Lifted` from any of them, and what is of one root in a
table is `Masked`. Each lists its transfers round by round as arrays; that view is all that the
checker, the cost model and the schedule file see.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from typing_extensions import override

from ..collective import Blocks, Collective, Layout
from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.files import writing_text
from ..toolchain.owned import require_like
from ..toolchain.public import public_class
from ..toolchain.values import is_several, natural, of_type, shown
from ..topology import Topology
from .arrays import ArrayFields
from .model import Duplex, Switching
from .transfers import KeptSums, Transfers
from .writing import BEGINNING, file_lines, without_collector

__all__ = ["UNNAMED", "Rounds", "Schedule"]

#: More blocks of a message than these are not worth a try.
MOST_CHUNKS = 2**25

#: The algorithm of a schedule of which nobody says what planned it.
UNNAMED = "unnamed"

#: The names of algorithms that a schedule file may have, as its JSON Schema says, too.
_PRINTABLE = re.compile(
    "[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]{1,100}"
)


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule(ArrayFields, ABC):
    """What all schedules have in common, however they are written.

    Parameters
    ----------
    algorithm : str
        What planned it, in 1 to 100 characters that can be printed; `Algorithm` says so of what it
        plans.
    switching : Switching
        How a message passes the nodes on its way; the word itself will do.
    ports : int
        How many messages a node may send, and receive, in a round; by default all that it has.
    chunks : int
        Into how many blocks a message is cut.
    duplex : Duplex
        How many messages a link carries at once; the word itself will do.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "allgather", algorithm="hamiltonian")
    >>> schedule.form, schedule.steps, schedule.chunks
    ('pattern', 8, 2)
    """

    form: ClassVar[str]

    arrays: ClassVar[dict[str, int]] = {}

    topology: Topology
    collective: Collective
    algorithm: str = UNNAMED
    switching: Switching = Switching.STORE_AND_FORWARD
    ports: int = cast("int", None)
    chunks: int = 1
    duplex: Duplex = Duplex.FULL

    def __post_init__(self) -> None:
        of_type("Topology", self.topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        of_type("Collective", self.collective, Collective, "a Collective, as parse_collective has")
        if not isinstance(self.algorithm, str) or not _PRINTABLE.fullmatch(self.algorithm):
            raise InputError(
                "Algorithm of a schedule must be a name of 1 to 100 characters that can be "
                f"printed, not {shown(self.algorithm)}"
            )
        object.__setattr__(self, "switching", Switching(self.switching))
        object.__setattr__(self, "duplex", Duplex(self.duplex))
        ports = self.topology.ports if self.ports is None else natural("Ports", self.ports)
        object.__setattr__(self, "ports", ports)
        object.__setattr__(self, "chunks", natural("Chunks", self.chunks, most=MOST_CHUNKS))
        super().__post_init__()

    if TYPE_CHECKING:
        # A field of a `Pattern`, which a property here would hide; a property of the others.
        @property
        def steps(self) -> int:
            """Number of steps, or rounds."""

    @property
    def round_count(self) -> int:
        """The same."""
        return self.steps

    @abstractmethod
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round, in order."""

    @cached_property
    def blocks(self) -> Blocks:
        """The numbered blocks."""
        return self.collective.blocks(self.topology, self.chunks)

    @property
    def in_shares(self) -> bool:
        """Whether each node completes a share of what is reduced; see `Layout`."""
        return Layout(self.blocks).in_shares

    @property
    def keeps_sums(self) -> bool:
        """Whether nodes keep the sums that they send."""
        return any(isinstance(transfers.payload, KeptSums) for transfers in self.rounds())

    @property
    def sums_of_owner(self) -> int:
        """How many sums of a reduction without a root a node completes: the chunks of its share."""
        return self.chunks if self.collective.personal else self.chunks // self.topology.nodes

    @cached_property
    def layout(self) -> Layout:
        """The layout of the nodes' memories, as a host addresses them."""
        return Layout(self.blocks, shared=self.in_shares)

    @property
    def head(self) -> dict[str, Any]:
        """What is said of the whole in any form, by the names of the fields."""
        names = ("topology", "collective", "algorithm", "switching", "ports", "chunks", "duplex")
        return {name: getattr(self, name) for name in names}

    def save(self, path: AnyPath, *, force: bool = False) -> None:
        """Write the schedule to a file, compressed if its name ends in ``.gz``.

        Parameters
        ----------
        force : bool
            Whether a file that is no schedule file is replaced.

        Raises
        ------
        InputError
            If there is such a file and may not be replaced, or the file cannot be written.
        """
        head = self.head | {
            "topology": self.topology.to_entry(),
            "collective": self.collective.to_json(),
            "ports": int(self.ports),
            "chunks": int(self.chunks),
        }
        if self.duplex is Duplex.FULL:
            del head["duplex"]
        require_like(path, BEGINNING, force=force)
        # The file is put in place only once it is whole.
        with writing_text(path) as file, without_collector():
            file.writelines(file_lines(head, self.blocks, self.rounds))

    def __eq__(self, other: object) -> bool:
        """True if all fields are equal."""
        if not isinstance(other, Schedule):
            return NotImplemented
        return self is other or (self.head == other.head and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((self.form, *self.head.values()))

    @cached_property
    def digest(self) -> str:
        """A name for the content: hexadecimal SHA-256 over all fields."""
        digest = hashlib.sha256(self.form.encode())
        for item in fields(self):
            _update(digest, getattr(self, item.name))
        return digest.hexdigest()


def _update(digest: "hashlib._Hash", value: Any) -> None:
    """Feed a field of a schedule into a digest."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, Enum):
        _update(digest, value.value)
    elif isinstance(value, tuple | list):
        for item in value:
            _update(digest, item)
    elif isinstance(value, Topology):
        digest.update(repr(value.to_entry()).encode())
    elif isinstance(value, Collective):
        digest.update(repr(value.to_json()).encode())
    elif hasattr(value, "__dataclass_fields__"):
        for item in fields(value):
            _update(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Rounds(Schedule):
    """Explicit rounds of paths with payloads.

    Parameters
    ----------
    transfers : tuple of Transfers
        One entry a round.

    Examples
    --------
    A broadcast from node 0 of a ring, in one round with circuits of one and two hops.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> rounds = Rounds(
    ...     topology=tf.Torus(4),
    ...     collective=tf.Collective("broadcast", 0),
    ...     switching=tf.Switching.CIRCUIT,
    ...     transfers=(tf.Transfers(np.array([0, 0]), np.array([[0, -1], [1, 1]])),),
    ... )
    >>> rounds.transfers[0].walk(rounds.topology).tolist()
    [[0, 1, 1], [0, 3, 2]]
    """

    form: ClassVar[str] = "rounds"

    transfers: tuple[Transfers, ...] = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        what = "a list of Transfers, one a round"
        each = self.transfers if is_several(self.transfers) else [self.transfers]
        transfers = tuple(of_type("Transfers", one, Transfers, what) for one in each)
        object.__setattr__(self, "transfers", transfers)

    @property
    @override
    def steps(self) -> int:
        return len(self.transfers)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round."""
        return iter(self.transfers)
