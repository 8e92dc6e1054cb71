"""Images: the words that fill the tables of a loaded fabric, and the files that hold them.

An `Image` is made from schedules, and `ImageLoader` takes its words in hardware. A *full* image
replaces all modes while no run is under way. A *partial* image fills some modes, while others may
run; it applies only on top of one particular image, its *base*.

An image is a sequence of 32-bit words::

    word 0       MAGIC: the format and its version
    word 1       digest of the fabric
    word 2       digest of the program
    word 3 ..    fill mask: one bit for each entry of a mode that is written, 32 to a word
    next word    the last word (CRC) of the base; 0 in a full image
    runs         any number of runs of consecutive rows of one piece of a table, each:
                   header: owner (bits 0-15), piece (16-21), number of rows less one (22-31)
                   first row
                   one data word for each row
    END          in place of a header
    last word    CRC-32 of all words before

The owner is the number of a table (`TableLayout.tables`), or `EVERY` for all nodes. Rows that are
never read are left out. A row that all nodes share is written once, with `EVERY`.

A file holds the words and then, compressed and for tools only, the schedules of all modes, the
least length that each form serves, and the places of the entries of a partial image.
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

#: The schedules of a mode, and True if each run chooses the root.
Wanted: TypeAlias = tuple[Sequence[Schedule], bool]

#: Index of the first word of the fill mask.
FILLS = 3

#: Longest gap of unused rows within a run: writing the gap costs no more words than a new run.
GAP = HEAD

__all__ = ["Image", "LoadedFabric", "Wanted", "read_fabric", "read_image"]


def _runs(there: Sequence[int], gap: int) -> Iterator[tuple[int, int]]:
    """Yield first and end of runs that cover all `there` rows; gaps up to `gap` rows are bridged.

    A run has at most `RUN` rows.
    """
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
    """The words that fill the tables of a loaded fabric with modes.

    Parameters
    ----------
    width : int
        Bits of a flit.
    modes : sequence of LoadableMode
        All modes of the fabric after loading, from mode 0 on.
    fills : sequence of int
        Numbers of the modes that a partial image writes. Empty for a full image, which writes all
        modes.
    kept : sequence of Place
        The place of each entry in the tables; by default entries are packed one after another.
    base : int
        The last word of the image that a partial image builds on; 0 for a full image.
    freed : sequence of int
        Numbers of entries that the base uses and this image no longer does.

    Raises
    ------
    InputError
        If the modes do not fit into the room.

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
        # Computing the places raises InputError if the modes do not fit, even under `python -O`.
        places = self.places
        assert len(places) == len(self.entries), "each entry lies somewhere"

    def __eq__(self, other: object) -> bool:
        """Return True if the other image has the same words."""
        return isinstance(other, Image) and np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.width, self.base, len(self.modes)))

    def __repr__(self) -> str:
        algorithms = ", ".join(str(facts["algorithm"]) for facts in self.facts)
        return f"<Image for {self.room.topology} of {self.width} bits: {algorithms}>"

    @classmethod
    def of(cls, room: Room, width: int, modes: Iterable[Wanted]) -> Image:
        """Return the full image of some modes.

        If all forms of the modes do not fit, each mode keeps only its form for the longest
        messages.

        Parameters
        ----------
        room : Room
            Capacity of the fabric.
        width : int
            Bits of a flit.
        modes : iterable of (sequence of Schedule, bool)
            For each mode its schedules, and True if each run chooses the root.

        Raises
        ------
        InputError
            If the modes do not fit, or the fabric cannot choose roots.
        """
        return _that_fits(room, modes, partial(cls, room, width))

    def with_modes(self, modes: Iterable[Wanted], mode: int | None = None) -> Image:
        """Return the partial image that replaces or adds modes on top of this image.

        The other modes keep their rows, and may run while the partial image is loaded.

        Parameters
        ----------
        modes : iterable of (sequence of Schedule, bool)
            For each new mode its schedules, and True if each run chooses the root.
        mode : int, optional
            Number of the first mode that is filled; by default the new modes are appended.

        Raises
        ------
        InputError
            If `mode` is out of range, or the modes do not fit beside the others.

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
        """Return the partial image of loadable modes that begin at number `mode`."""
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
        """The bit fields of all tables."""
        return TableLayout(self.room, self.width)

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries of all modes, mode by mode."""
        return entries_of(self.modes)

    @cached_property
    def places(self) -> Sequence[Place]:
        """The place of each entry in the tables."""
        return self.kept or places_beside(self.room, self.entries)

    @property
    def _placed(self) -> list[tuple[Place, Entry]]:
        """The entries that this image writes, with their places."""
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
        """Clock edges from the last word until the output `loaded` is valid."""
        return SETTLED

    @cached_property
    def words(self) -> list[int]:
        """All words of the image, 32 bits each."""
        filled = sum(1 << k for k in (*(place.number for place, _ in self._placed), *self.freed))
        found = [MAGIC, self.room.digest(self.width), int(self.program.digest[:8], 16)]
        words = range(self.layout.fill_words)
        found += [filled >> PIECE * k & (1 << PIECE) - 1 for k in words]
        found += [self.base, *self._tables(), END]
        return [*found, zlib.crc32(np.array(found, "<u4").tobytes())]

    @property
    def there(self) -> tuple[int, int, int]:
        """The state of the fabric after loading, as the parameter `there` of `ImageLoader`.

        A mask of all valid entries, the digest of the program, and the last word of the image.
        """
        there = sum(1 << place.number for place in self.places)
        return there, self.words[2], self.words[-1]

    @cached_property
    def contents(self) -> Contents:
        """The table rows of the modes that this image writes."""
        return contents_of(self.layout, self._placed, self.freed)

    def _tables(self) -> Iterator[int]:
        """Yield the words of all runs: first rows that all nodes share, then rows of each owner."""
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
        """Yield the words of the runs that write the rows of a piece selected by `which`."""
        # Bridging a gap writes zeros into its rows. In a partial image they may belong to a mode
        # that stays; in a run of one node they may have been written with EVERY. In a full image
        # EVERY runs may bridge gaps, since they come before the runs of single nodes.
        whole = not self.fills and owner >= self.room.nodes
        for start, end in _runs(np.flatnonzero(which).tolist(), GAP if whole else 0):
            yield owner | piece << PIECE_AT | (end - start - 1) << ROWS_AT
            yield start
            yield from np.maximum(rows[start:end], 0).tolist()

    @property
    def facts(self) -> list[dict[str, Any]]:
        """For each mode its number, collective, algorithms, root and formulas of cycles."""
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
        """Write the words and the schedules to a file."""
        texts = [[_text(form.program.schedule) for form in mode.forms] for mode in self.modes]
        served = [[mode.any_root, *mode.starts] for mode in self.modes]
        facts = {"modes": self.facts, "schedules": texts, "served": served, "places": [*self.kept]}
        tail = zlib.compress(json.dumps(facts).encode())
        with writing(path) as file:
            file.write(np.array(self.words, "<u4").tobytes() + tail)


def _cut(rows: Sequence[int], piece: Piece) -> IntArray:
    """Return the bits of a piece in each row of its table; unasked rows stay `UNASKED`."""
    values = np.array(rows, object)
    cut = values >> piece.low & (1 << piece.width) - 1
    return np.where(values == UNASKED, UNASKED, cut).astype(int)


def _text(schedule: Schedule) -> str:
    """Return the JSON text of a schedule."""
    if isinstance(schedule, Lifted) and schedule.collective.without:
        schedule = schedule.part
    with TemporaryDirectory() as folder:
        name = Path(folder) / "schedule.json"
        schedule.save(name)
        return name.read_text()


def _schedule(text: str) -> Schedule:
    """Return the schedule of a JSON text, checked because the file may have been changed."""
    return recognise(parse_schedule(parse_json(str.encode(text))))


def _that_fits(
    room: Room, wanted: Iterable[Wanted], make: Callable[[Sequence[LoadableMode]], Image]
) -> Image:
    """Return the image of the wanted modes: with all forms if they fit, else with one each."""
    operators, modes = room.parsed_operators(), list[LoadableMode]()
    for schedules, any_root in wanted:
        if any_root and not room.roots:
            raise InputError(
                "The root of this fabric is fixed; for root any, build it with --root any"
            )
        modes.append(loadable_mode(schedules, room.flits, operators, room, any_root=any_root))
    try:
        return make(modes)
    except InputError:
        if all(len(mode.forms) == 1 for mode in modes):
            raise
        return make([mode.longest for mode in modes])


class LoadedFabric(NamedTuple):
    """The facts of a loaded fabric that an image must fit.

    Parameters
    ----------
    width : int
        Bits of a flit.
    modes : list of (str, int or "any" or None)
        Collective and root of each mode that the fabric was built with.
    bus : str or None
        Protocol of the bus in front of the host port; None without a bus.
    manifest : mapping of str to object
        Contents of the manifest file; empty if none has been read.
    """

    room: Room
    width: int
    modes: list[tuple[str, int | str | None]]
    bus: str | None = None
    manifest: Mapping[str, Any] = MappingProxyType({})


def read_fabric(path: str | PathLike[str]) -> LoadedFabric:
    """Return the loaded fabric that a manifest describes.

    Parameters
    ----------
    path : str or path-like
        The manifest, a JSON file that was written beside the Verilog.

    Raises
    ------
    InputError
        If the file is no whole manifest, was changed, or is of a fabric with fixed tables.
    """
    require_whole(path)
    try:
        facts = parse_json(read_bytes(path, "Manifest"))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(
            f"Manifest {path} must be JSON, as torusfabric verilog writes it: {error}"
        ) from error
    if not isinstance(facts, dict) or "tables" not in facts:
        raise InputError(
            f"Manifest {path} is not of a fabric whose tables are loaded; build one with --tables "
            "ram"
        )
    try:
        tables = facts["tables"]
        modes = [(str(name), root) for name, root in tables["modes"]]
        room, bus = Room.from_json(tables["frame"]), facts.get("bus", {}).get("protocol")
        fabric = LoadedFabric(room, int(facts["width"]), modes, bus, facts)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"Manifest {path} is incomplete or damaged ({error}); write the fabric again"
        ) from error
    if f"{fabric.room.digest(fabric.width):08x}" != tables["digest"]:
        raise InputError(
            f"Manifest {path} was changed after it was written; write the fabric again"
        )
    return fabric


def read_image(path: str | PathLike[str], room: Room, width: int) -> Image:
    """Read an image from a file, and check that it fits a fabric.

    The image is built again from the schedules in the file, and its words are compared.

    Parameters
    ----------
    path : str or path-like
        A file that `Image.save` wrote.
    room : Room
        Capacity of the fabric.
    width : int
        Bits of a flit of the fabric.

    Raises
    ------
    InputError
        If the file is torn, for another fabric, or its words differ from those of its schedules.
    """
    raw = read_bytes(path, "Image")
    head = np.frombuffer(raw[: len(raw) // 4 * 4], "<u4").tolist()
    at = FILLS + TableLayout(room, width).fill_words
    if len(head) <= at or head[0] != MAGIC:
        raise InputError(f"File {path} is not an image of version 2; make one by torusfabric image")
    digest = room.digest(width)
    if head[1] != digest:
        raise InputError(
            f"Image {path} is for another fabric ({head[1]:08x} in place of {digest:08x}); make "
            "it with the manifest of this one"
        )
    filled = sum(word << PIECE * k for k, word in enumerate(head[FILLS:at]))
    base, at = head[at], at + 1
    while at + 1 < len(head) and head[at] != END:
        at += HEAD + (head[at] >> ROWS_AT) + 1
    end = at + 2
    if end > len(head) or zlib.crc32(raw[: 4 * at + 4]) != head[at + 1]:
        raise InputError(
            f"Image {path} is incomplete or damaged; make it again by torusfabric image"
        )
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
            f"Image {path} lacks its schedules, or they cannot be read ({error}); make it again "
            "by torusfabric image"
        ) from error
    entries = entries_of(modes)
    placed = [*zip(kept, entries, strict=False)]
    if len(kept) != len(entries) * bool(base) or not all(
        place.fits(room, entry.form) for place, entry in placed
    ):
        raise InputError(
            f"Image {path} does not say where each mode lies; make it again by torusfabric image"
        )
    fills = sorted({entry.mode for place, entry in placed if filled >> place.number & 1})
    taken = {place.number for place, _ in placed}
    freed = [k for k in range(room.sizes.entries) if base and filled >> k & 1 and k not in taken]
    image = Image(room, width, modes, fills, kept, base, freed)
    if image.words != head[:end]:
        raise InputError(
            f"Image {path} does not agree with the schedules behind it; make it again by "
            "torusfabric image"
        )
    return image
