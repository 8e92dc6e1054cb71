"""Images: what is loaded into the tables of a fabric, as words, and as a file.

An image is a list of words of 32 bits: the format and its version, the digest of the fabric, the
digest of the program, a bit for each entry of a mode that is filled, and the check of the image
that has to be there, or 0; then runs of rows of a piece of a table, each with a word that has the
owner of the table, the number of the piece and the rows less one, a word that has the first row,
and a word for each row; at last `END` and a check of all. Rows of which nobody asks are left out,
and what is equal at all nodes is there once. A file has behind them, for tools, the schedules of
all modes, the lengths from which on each serves, and where these lie.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...errors import InputError
from ...program import Program
from ...schedule import Lifted, Schedule
from ...schedule.parsing import parse_schedule
from ...schedule.recognise import recognise
from ...toolchain.files import writing
from ...toolchain.owned import require_whole
from ...toolchain.reading import parse_json, read_bytes, unpack
from ...topology import BoolArray, IntArray
from .contents import UNASKED, Contents, contents_of
from .fitting import fit, loadable_form, loadable_mode
from .layout import HEAD, PIECE, RUN, Piece, TableLayout, pieces
from .loadable import Entry, LoadableMode, entries_of
from .loader import END, EVERY, MAGIC, PIECE_AT, ROWS_AT, SETTLED
from .places import Place, places_beside
from .room import Room

#: The schedules of a mode, and whether each run chooses the root.
Wanted: TypeAlias = tuple[Sequence[Schedule], bool]

#: The first word of an image that has a bit for each entry.
FILLS = 3

#: So many rows of which nobody asks take no more words than another run of rows.
GAP = HEAD

__all__ = ["Image", "LoadedFabric", "Wanted", "read_fabric", "read_image"]


def _runs(there: Sequence[int], gap: int) -> Iterator[tuple[int, int]]:
    """The runs of rows of which some are there; a gap of so many is none."""
    if not there:
        return
    start = last = there[0]
    for row in there[1:]:
        if row - last > gap + 1 or row - start >= RUN:
            yield start, last + 1
            start = row
        last = row
    yield start, last + 1


@dataclass(frozen=True, eq=False, repr=False)
class Image:
    """What is loaded into the tables of a fabric.

    Parameters
    ----------
    width : int
        Bits of a flit.
    modes : sequence of LoadableMode
        From mode 0 on.
    fills : sequence of int
        The modes that it fills, while others may run; by default all, and no run may be under way.
    kept : sequence of Place
        Where each entry lies; by default one behind the other.
    base : int
        Where it fills some modes, the check of the image that has the others.
    freed : sequence of int
        Entries that these modes had before, and have no more.

    Raises
    ------
    InputError
        If they do not fit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    >>> image = Image.of(fabric.room, fabric.width, [([tf.plan("3x3", "alltoall")], False)])
    >>> hex(image.words[0]), image.words[1] == fabric.digest, len(image.words)
    ('0x2494654', True, 177)
    """

    room: Room
    width: int
    modes: Sequence[LoadableMode]
    fills: Sequence[int] = ()
    kept: Sequence[Place] = ()
    base: int = 0
    freed: Sequence[int] = ()

    def __post_init__(self) -> None:
        # It is refused here what does not fit, whether assertions are checked or not.
        places = self.places
        assert len(places) == len(self.entries), "each entry lies somewhere"

    def __eq__(self, other: object) -> bool:
        """True if the same words are loaded."""
        return isinstance(other, Image) and np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.width, self.base, len(self.modes)))

    def __repr__(self) -> str:
        algorithms = ", ".join(str(facts["algorithm"]) for facts in self.facts)
        return f"<Image for {self.room.topology} of {self.width} bits: {algorithms}>"

    @classmethod
    def of(cls, room: Room, width: int, modes: Iterable[Wanted]) -> Image:
        """The image of what is wanted of each mode."""
        return _that_fits(room, modes, partial(cls, room, width))

    def with_modes(self, modes: Iterable[Wanted], mode: int | None = None) -> Image:
        """What fills modes of a fabric that holds this image, while its other modes may run.

        Parameters
        ----------
        mode : int, optional
            The first that is filled; by default the first behind all.

        Examples
        --------
        >>> import torusfabric as tf
        >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall", "scatter")]
        >>> fabric = tf.Fabric(tf.compile(plans[:2], max_flits=4), tables="ram")
        >>> later = fabric.image.with_modes([(plans[2:], False)], 0)
        >>> [mode["collective"] for mode in later.facts], len(later.words) < len(fabric.image.words)
        (['scatter', 'alltoall'], True)
        """
        mode = len(self.modes) if mode is None else mode
        if not 0 <= mode <= len(self.modes):
            raise InputError(f"Mode must be from 0 to {len(self.modes)}, not {mode}")
        return _that_fits(self.room, modes, lambda made: self._with_modes(made, mode))

    def _with_modes(self, made: Sequence[LoadableMode], mode: int) -> Image:
        """The same, of modes as they can be loaded."""
        fills = range(mode, mode + len(made))
        all_modes = [*self.modes[:mode], *made, *self.modes[mode + len(made) :]]
        entries = entries_of(all_modes)
        before = zip(self.places, self.entries, strict=True)
        staying = [(place, entry.form) for place, entry in before if entry.mode not in fills]
        new = [entry for entry in entries if entry.mode in fills]
        added, kept = iter(places_beside(self.room, new, staying)), (place for place, _ in staying)
        places = [next(added if entry.mode in fills else kept) for entry in entries]
        freed = {place.number for place in self.places} - {place.number for place in places}
        return Image(self.room, self.width, all_modes, fills, places, self.words[-1], sorted(freed))

    @cached_property
    def layout(self) -> TableLayout:
        """Which bits of tables are what."""
        return TableLayout(self.room, self.width)

    @cached_property
    def entries(self) -> list[Entry]:
        """What starts find, of one mode after the other."""
        return entries_of(self.modes)

    @cached_property
    def places(self) -> Sequence[Place]:
        """Where each entry lies."""
        return self.kept or places_beside(self.room, self.entries)

    @property
    def _placed(self) -> list[tuple[Place, Entry]]:
        """The entries that it fills, and where."""
        fills = self.fills or range(len(self.modes))
        return [
            each for each in zip(self.places, self.entries, strict=True) if each[1].mode in fills
        ]

    @cached_property
    def program(self) -> Program:
        """The program of the fabric once it is loaded."""
        return fit(self.modes, self.room)

    @property
    def settling(self) -> int:
        """Edges after the last word until `loaded` tells whether the image is there."""
        return SETTLED

    @cached_property
    def words(self) -> list[int]:
        """Its words."""
        filled = sum(1 << k for k in (*(place.number for place, _ in self._placed), *self.freed))
        found = [MAGIC, self.room.digest(self.width), int(self.program.digest[:8], 16)]
        words = range(self.layout.fill_words)
        found += [filled >> PIECE * k & (1 << PIECE) - 1 for k in words]
        found += [self.base, *self._tables(), END]
        return [*found, zlib.crc32(np.array(found, "<u4").tobytes())]

    @property
    def there(self) -> tuple[int, int, int]:
        """What is there once it is loaded, as `ImageLoader` takes it."""
        there = sum(1 << place.number for place in self.places)
        return there, self.words[2], self.words[-1]

    @cached_property
    def contents(self) -> Contents:
        """The rows of tables of the modes that it fills."""
        return contents_of(self.layout, self._placed, self.freed)

    def _tables(self) -> Iterator[int]:
        """The words of tables: what nodes have alike once, and what each owner has besides."""
        nodes, tables = self.room.nodes, self.layout.tables
        for owners in (range(nodes), *([owner] for owner in range(nodes, len(tables)))):
            for number, piece in enumerate(pieces(tables[owners[0]])):
                rows = np.array(
                    [_cut(self.contents[owner][piece.table], piece) for owner in owners]
                )
                alike = (rows == rows[0]).all(axis=0) & (rows[0] != UNASKED) & (len(owners) > 1)
                yield from self._written(EVERY, number, rows[0], alike)
                for owner, own in zip(owners, rows, strict=True):
                    yield from self._written(owner, number, own, (own != UNASKED) & ~alike)

    def _written(self, owner: int, piece: int, rows: IntArray, which: BoolArray) -> Iterator[int]:
        """The words that write some rows of a piece."""
        # What nobody asks for may be of a mode that stays, or is written for all nodes.
        whole = not self.fills and owner >= self.room.nodes
        for start, end in _runs(np.flatnonzero(which).tolist(), GAP if whole else 0):
            yield owner | piece << PIECE_AT | (end - start - 1) << ROWS_AT
            yield start
            yield from np.maximum(rows[start:end], 0).tolist()

    @property
    def facts(self) -> list[dict[str, Any]]:
        """What each mode does."""
        return [
            {
                "mode": number,
                "collective": self.program.name_of(mode),
                "algorithm": mode.algorithms,
                "root": "any" if mode.any_root else mode.collective.root,
                "cycles": [piece._asdict() for piece in mode.pieces(self.room.flits)],
            }
            for number, mode in enumerate(self.program.modes)
        ]

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        texts = [[_text(form.program.schedule) for form in mode.forms] for mode in self.modes]
        served = [[mode.any_root, *mode.starts] for mode in self.modes]
        facts = {"modes": self.facts, "schedules": texts, "served": served, "places": [*self.kept]}
        tail = zlib.compress(json.dumps(facts).encode())
        with writing(path) as file:
            file.write(np.array(self.words, "<u4").tobytes() + tail)


def _cut(rows: Sequence[int], piece: Piece) -> IntArray:
    """What a piece has of the rows of its table."""
    values = np.array(rows, object)
    cut = values >> piece.low & (1 << piece.width) - 1
    return np.where(values == UNASKED, UNASKED, cut).astype(int)


def _text(schedule: Schedule) -> str:
    """A schedule as a file has it."""
    if isinstance(schedule, Lifted) and schedule.collective.without:
        schedule = schedule.part
    with TemporaryDirectory() as folder:
        name = Path(folder) / "schedule.json"
        schedule.save(name)
        return name.read_text()


def _schedule(text: str) -> Schedule:
    """The schedule of a text, for a file may have something else there."""
    return recognise(parse_schedule(parse_json(str.encode(text))))


def _that_fits(
    room: Room, wanted: Iterable[Wanted], make: Callable[[Sequence[LoadableMode]], Image]
) -> Image:
    """The image of what is wanted, with all forms of modes if these fit, else with one each."""
    operators, modes = room.parsed_operators(), list[LoadableMode]()
    for schedules, any_root in wanted:
        if any_root and not room.roots:
            raise InputError("Fabric must take the roots of runs for any root, it cannot")
        modes.append(loadable_mode(schedules, room.flits, operators, room, any_root=any_root))
    try:
        return make(modes)
    except InputError:
        if all(len(mode.forms) == 1 for mode in modes):
            raise
        return make([mode.longest for mode in modes])


class LoadedFabric(NamedTuple):
    """A fabric whose tables are loaded.

    Parameters
    ----------
    width : int
        Bits of a flit.
    modes : list of (str, int or "any" or None)
        What it is built with: collectives, and their roots.
    bus : str or None
        What it stands behind.
    manifest : mapping of str to object
        Its manifest, if it has been read.
    """

    room: Room
    width: int
    modes: list[tuple[str, int | str | None]]
    bus: str | None = None
    manifest: Mapping[str, Any] = MappingProxyType({})


def read_fabric(path: str | PathLike[str]) -> LoadedFabric:
    """The fabric that a manifest describes.

    Raises
    ------
    InputError
        If it is none, or has no tables that are loaded.
    """
    require_whole(path)
    try:
        facts = parse_json(read_bytes(path, "Manifest"))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"Manifest {path} must be JSON: {error}") from error
    if not isinstance(facts, dict) or "tables" not in facts:
        raise InputError(f"Manifest {path} must be of a fabric with --tables ram, not another")
    try:
        tables = facts["tables"]
        modes = [(str(name), root) for name, root in tables["modes"]]
        room, bus = Room.from_json(tables["frame"]), facts.get("bus", {}).get("protocol")
        fabric = LoadedFabric(room, int(facts["width"]), modes, bus, facts)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"Manifest {path} must be whole, not without {error}") from error
    if f"{fabric.room.digest(fabric.width):08x}" != tables["digest"]:
        raise InputError(f"Manifest {path} must be as it was written, not changed")
    return fabric


def read_image(path: str | PathLike[str], room: Room, width: int) -> Image:
    """Read an image from a file, and check it for a fabric.

    Raises
    ------
    InputError
        If it is torn, for another fabric, or not what its schedules make.
    """
    raw = read_bytes(path, "Image")
    head = np.frombuffer(raw[: len(raw) // 4 * 4], "<u4").tolist()
    at = FILLS + TableLayout(room, width).fill_words
    if len(head) <= at or head[0] != MAGIC:
        raise InputError(f"Image {path} must be an image of version 2, not something else")
    digest = room.digest(width)
    if head[1] != digest:
        raise InputError(f"Image {path} must be for fabric {digest:08x}, not {head[1]:08x}")
    filled = sum(word << PIECE * k for k, word in enumerate(head[FILLS:at]))
    base, at = head[at], at + 1
    while at + 1 < len(head) and head[at] != END:
        at += HEAD + (head[at] >> ROWS_AT) + 1
    end = at + 2
    if end > len(head) or zlib.crc32(raw[: 4 * at + 4]) != head[at + 1]:
        raise InputError(f"Image {path} must be whole, not torn")
    try:
        tail = parse_json(unpack(raw[4 * end :]))
        modes = []
        for texts, (any_root, *starts) in zip(tail["schedules"], tail["served"], strict=True):
            forms = [loadable_form(_schedule(text), room.flits, room.parsed_operators(), room)
                     for text in texts]  # fmt: skip
            modes.append(LoadableMode(tuple(forms), tuple(map(int, starts)), bool(any_root)))
        kept = [Place(int(number), int(row), int(block), tuple([*map(int, each)] for each in named))
                for number, row, block, named in tail["places"]]  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Image {path} must have its schedules behind it, and no more, not {error}"
        ) from error
    entries = entries_of(modes)
    placed = [*zip(kept, entries, strict=False)]
    if len(kept) != len(entries) * bool(base) or not all(
        place.fits(room, entry.form) for place, entry in placed
    ):
        raise InputError(f"Image {path} must say where each mode lies, not something else")
    fills = sorted({entry.mode for place, entry in placed if filled >> place.number & 1})
    taken = {place.number for place, _ in placed}
    freed = [k for k in range(room.sizes.entries) if base and filled >> k & 1 and k not in taken]
    image = Image(room, width, modes, fills, kept, base, freed)
    if image.words != head[:end]:
        raise InputError(f"Image {path} must be what its schedules make, not something else")
    return image
