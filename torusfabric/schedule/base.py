"""`Schedule`, the base class of all schedules, and `Rounds`, the form with explicit paths.

A schedule is an immutable value that tells which blocks travel along which path in which round.
Planners write one of these forms:

- `Pattern`: oblivious forwarding, the same in every step; `SumPattern` for sums.
- `Table`: one table that serves every node; `SumTable` where nodes keep their sums.
- `Rounds`: explicit paths, round by round.
- `Quotient`: nodes have labels, which are numbers, and nodes with the same label do the same.

`Lifted` runs the schedule of one group of nodes in all groups. `Masked` restricts a table or
pattern that serves all nodes to a single root.

Every form lists its transfers round by round as arrays (`Schedule.rounds`). Code that has no
special case for a form, such as the writer of schedule files, uses nothing else.
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

from ..collective import Blocks, Collective, MemoryLayout
from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.files import open_text_for_writing
from ..toolchain.owned import require_replaceable
from ..toolchain.public import public_class
from ..toolchain.values import is_iterable, message_text, parse_non_negative_int, require_type
from ..topology import Topology
from .arrays import ArrayFields
from .model import Duplex, Switching
from .transfers import KeptSums, Transfers
from .writing import BEGINNING, file_lines, without_garbage_collector

__all__ = ["UNNAMED", "Rounds", "Schedule"]

#: The largest accepted number of chunks of a message.
MOST_CHUNKS = 2**25

#: The algorithm name of a schedule whose author gives none.
UNNAMED = "unnamed"

#: The form of an algorithm name, equal to the pattern in the JSON Schema of schedule files.
_PRINTABLE = re.compile(
    "[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]{1,100}"
)


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule(ArrayFields, ABC):
    """A schedule of a collective on a topology; the base class of all forms.

    Parameters
    ----------
    topology : Topology
        The network.
    collective : Collective
        The collective that the schedule performs, with its root and axes.
    algorithm : str
        Name of the planner, 1 to 100 printable characters. `Algorithm` sets it for its own
        schedules.
    switching : Switching
        `Switching.STORE_AND_FORWARD`: each message moves by one hop in a round.
        `Switching.CIRCUIT`: the path of a message is held for the whole round. The words
        ``"store-and-forward"`` and ``"circuit"`` are accepted, too.
    ports : int
        Number of messages that a node may send in a round; it may receive as many. Default: one
        for each of its ports.
    chunks : int
        Number M of chunks into which a message is cut.
    duplex : Duplex
        Number of messages that a link carries at once: `Duplex.FULL` for one in each direction,
        `Duplex.HALF` for one in all. The words ``"full"`` and ``"half"`` are accepted, too.

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
        require_type("Topology", self.topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        require_type(
            "Collective", self.collective, Collective, "a Collective, as parse_collective has"
        )
        if not isinstance(self.algorithm, str) or not _PRINTABLE.fullmatch(self.algorithm):
            raise InputError(
                "Algorithm of a schedule must be a name of 1 to 100 characters that can be "
                f"printed, not {message_text(self.algorithm)}"
            )
        object.__setattr__(self, "switching", Switching(self.switching))
        object.__setattr__(self, "duplex", Duplex(self.duplex))
        ports = (
            self.topology.ports
            if self.ports is None
            else parse_non_negative_int("Ports", self.ports)
        )
        object.__setattr__(self, "ports", ports)
        object.__setattr__(
            self, "chunks", parse_non_negative_int("Chunks", self.chunks, most=MOST_CHUNKS)
        )
        super().__post_init__()

    if TYPE_CHECKING:
        # `steps` is a field in `Pattern` and a property in the other forms. A real property here
        # would hide the field.
        @property
        def steps(self) -> int:
            """Number of rounds of the schedule, called steps if it is store-and-forward."""

    @property
    def round_count(self) -> int:
        """Number of rounds of the schedule, the same number as `steps`."""
        return self.steps

    @abstractmethod
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each round, in order."""

    @cached_property
    def blocks(self) -> Blocks:
        """The numbered blocks of the collective on this topology."""
        return self.collective.blocks(self.topology, self.chunks)

    @property
    def in_shares(self) -> bool:
        """True if messages are cut into N shares, and each node completes the sum of one share.

        This is the case only in reductions; see `MemoryLayout`.
        """
        return MemoryLayout(self.blocks).in_shares

    @property
    def keeps_sums(self) -> bool:
        """True if nodes keep their partial sums and send copies of them."""
        return any(isinstance(transfers.payload, KeptSums) for transfers in self.rounds())

    @property
    def sums_of_owner(self) -> int:
        """Number of sums that each node completes in a reduction without a root.

        The number is M in a reduce-scatter, and M / N in an all-reduce, with M chunks and N nodes.
        """
        return self.chunks if self.collective.personal else self.chunks // self.blocks.group_size

    @cached_property
    def layout(self) -> MemoryLayout:
        """The layout of the node memories that a host reads and writes."""
        return MemoryLayout(self.blocks, shared=self.in_shares)

    @property
    def head(self) -> dict[str, Any]:
        """The fields that schedules of all forms have, as keyword arguments.

        They serve to make another form of the same schedule, for example ``Rounds(**pattern.head,
        transfers=..)``.
        """
        names = ("topology", "collective", "algorithm", "switching", "ports", "chunks", "duplex")
        return {name: getattr(self, name) for name in names}

    def save(self, path: AnyPath, *, force: bool = False) -> None:
        """Write the schedule to a file, compressed if its name ends in ``.gz``.

        Parameters
        ----------
        force : bool
            True to overwrite an existing file that is not a schedule file.

        Raises
        ------
        InputError
            If the path has a file of another type and `force` is False, or if the file cannot be
            written.
        """
        head = self.head | {
            "topology": self.topology.to_entry(),
            "collective": self.collective.to_json(),
            "ports": int(self.ports),
            "chunks": int(self.chunks),
        }
        if self.duplex is Duplex.FULL:
            del head["duplex"]
        require_replaceable(path, BEGINNING, force=force)
        # The file appears under its name only when it is complete.
        with open_text_for_writing(path) as file, without_garbage_collector():
            file.writelines(file_lines(head, self.blocks, self.rounds))

    def __eq__(self, other: object) -> bool:
        """True if `other` is a schedule with equal fields."""
        if not isinstance(other, Schedule):
            return NotImplemented
        return self is other or (self.head == other.head and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((self.form, *self.head.values()))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal SHA-256 over all fields: equal schedules have equal digests."""
        digest = hashlib.sha256(self.form.encode())
        for item in fields(self):
            _update_digest(digest, getattr(self, item.name))
        return digest.hexdigest()


def _update_digest(digest: "hashlib._Hash", value: Any) -> None:
    """Add the value of a field of a schedule to a SHA-256 digest that is being computed."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, Enum):
        _update_digest(digest, value.value)
    elif isinstance(value, tuple | list):
        for item in value:
            _update_digest(digest, item)
    elif isinstance(value, Topology):
        digest.update(repr(value.to_entry()).encode())
    elif isinstance(value, Collective):
        digest.update(repr(value.to_json()).encode())
    elif hasattr(value, "__dataclass_fields__"):
        for item in fields(value):
            _update_digest(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Rounds(Schedule):
    """A schedule with explicit paths, round by round.

    Parameters
    ----------
    transfers : tuple of Transfers
        The transfers of each round.

    Examples
    --------
    A broadcast from node 0 of a ring, in one round. Its circuits have one hop (by port 0, to node
    1) and two hops (by port 1, over node 3 to node 2). The last node of a short path is repeated:

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
        each = self.transfers if is_iterable(self.transfers) else [self.transfers]
        transfers = tuple(require_type("Transfers", one, Transfers, what) for one in each)
        object.__setattr__(self, "transfers", transfers)

    @property
    @override
    def steps(self) -> int:
        return len(self.transfers)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Return the transfers of each round, in order."""
        return iter(self.transfers)
