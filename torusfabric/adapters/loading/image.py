"""Images: the words that fill the tables of a loaded fabric, and the files that hold them.

An `Image` is made from schedules, and the hardware `ImageLoader` writes its words into the tables.
A *full* image replaces all modes while no run is under way. A *partial* image fills some modes,
while others may run; it can be loaded only after one particular image, its *base*.

A *room* is the capacity of a loaded fabric. An *entry* is one form of a mode, for one root if runs
choose the root. An *owner* is a node, or one of the tables that exist once in a fabric. A *piece*
is a range of columns of a table, at most 32 bits wide, since one word of an image fills one row of
one piece.

An image is a sequence of 32-bit words::

    word 0       MAGIC: the format and its version
    word 1       digest of the fabric
    word 2       digest of the program
    word 3 ..    fill mask: 32 entries to a word; the bit of an entry is set if the image writes or
                   frees the entry
    next word    the last word (CRC) of the base; 0 in a full image
    row runs     any number of runs of consecutive rows of one piece of a table, each:
                   header: owner (bits 0-15), piece (16-21), number of rows less one (22-31)
                   number of the first row
                   one data word for each row
    END_MARK     in place of a header
    last word    CRC-32 of all words before

The owner is an index of `TableLayout.table_sizes`, or `ALL_NODES` for all nodes. Rows that are
never read are left out. A row that is equal in all nodes is written once, with `ALL_NODES`.

A file holds the words. Behind them follow facts for tools only, compressed: the schedules of all
modes, the least length that each form serves, and the rows of each entry of a partial image.
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
from ...program import Mode, Program
from ...schedule import Lifted, Schedule
from ...schedule.parsing import parse_schedule
from ...schedule.recognise import recognise
from ...toolchain.files import open_for_writing
from ...toolchain.owned import require_complete_set
from ...toolchain.reading import decompress, parse_json, read_bytes
from ...topology import BoolArray, IntArray
from .contents import UNUSED_ROW, Contents, table_contents
from .fitting import loadable_form, loadable_mode, program_from_modes
from .layout import (
    HEADER_WORDS,
    MOST_RUN_ROWS,
    PIECE_BITS,
    TableLayout,
    TablePiece,
    split_into_pieces,
)
from .loadable import LoadableMode, StartEntry, list_entries
from .loader import ALL_NODES, END_MARK, LOADED_CYCLES, MAGIC, PIECE_AT, ROWS_AT
from .places import TableAllocation, allocate_entries
from .room import Room

#: The schedules of a mode, and True if each run chooses the root.
ModeRequest: TypeAlias = tuple[Sequence[Schedule], bool]

#: Index of the first word of the fill mask.
FILL_MASK_INDEX = 3

#: Longest gap of unused rows within a run: writing the gap costs no more words than a new run.
LONGEST_GAP = HEADER_WORDS

__all__ = ["Image", "LoadedFabric", "ModeRequest", "mode_entry", "read_fabric", "read_image"]


def _row_runs(there: Sequence[int], gap: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of consecutive rows that an image writes, to cover the rows in `there`.

    A range is a pair of its first row and its end (exclusive). It bridges gaps of up to `gap` rows,
    and has at most `MOST_RUN_ROWS` rows. For example, rows 0, 1 and 3 and a gap of 1 give (0, 4);
    without gaps they give (0, 2) and (3, 4).
    """
    if not there:
        return
    start = last = there[0]
    for row in there[1:]:
        if row - last > gap + 1 or row - start >= MOST_RUN_ROWS:
            yield start, last + 1
            start = row
        last = row
    yield start, last + 1


@dataclass(frozen=True, eq=False, repr=False)
class Image:
    """The words that fill the tables of a loaded fabric with modes.

    Parameters
    ----------
    room : Room
        Capacity of the fabric.
    width : int
        Bits of a flit.
    modes : sequence of LoadableMode
        All modes of the fabric after loading, from mode 0 on.
    fills : sequence of int
        Numbers of the modes that a partial image writes. Empty for a full image, which writes all
        modes.
    kept : sequence of TableAllocation
        The rows of each entry (form of a mode, for one root) in the tables. By default entries get
        rows one after another.
    base : int
        The last word of the image that a partial image builds on; 0 for a full image.
    freed : sequence of int
        Numbers of entries that are in use before a partial image, and unused after it.

    Raises
    ------
    InputError
        If the modes do not fit into the room.

    Examples
    --------
    An image for an all-gather fabric, which can then run an all-to-all, has 177 words.

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    >>> modes = [([tf.plan("3x3", "alltoall")], False)]
    >>> image = Image.from_schedules(fabric.room, fabric.width, modes)
    >>> hex(image.words[0]), image.words[1] == fabric.digest, len(image.words)
    ('0x2494654', True, 177)
    """

    room: Room
    width: int
    modes: Sequence[LoadableMode]
    fills: Sequence[int] = ()
    kept: Sequence[TableAllocation] = ()
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
    def from_schedules(cls, room: Room, width: int, modes: Iterable[ModeRequest]) -> Image:
        """Return the full image of some modes, which replaces all modes of a fabric.

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
        return _make_fitting_image(room, modes, partial(cls, room, width))

    def with_modes(self, modes: Iterable[ModeRequest], mode: int | None = None) -> Image:
        """Return a partial image, to be loaded after this image, that replaces or adds modes.

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
        The partial image replaces mode 0, an all-gather, and has fewer words than the full image.

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
        return _make_fitting_image(
            self.room, modes, lambda made: self._with_loadable_modes(made, mode)
        )

    def _with_loadable_modes(self, made: Sequence[LoadableMode], mode: int) -> Image:
        """Return the partial image that fills modes `mode`, `mode` + 1, .. with those in `made`."""
        fills = range(mode, mode + len(made))
        all_modes = [*self.modes[:mode], *made, *self.modes[mode + len(made) :]]
        entries = list_entries(all_modes)
        before = zip(self.places, self.entries, strict=True)
        staying = [(place, entry.form) for place, entry in before if entry.mode not in fills]
        new = [entry for entry in entries if entry.mode in fills]
        added, kept = (
            iter(allocate_entries(self.room, new, staying)),
            (place for place, _ in staying),
        )
        places = [next(added if entry.mode in fills else kept) for entry in entries]
        freed = {place.number for place in self.places} - {place.number for place in places}
        return Image(self.room, self.width, all_modes, fills, places, self.words[-1], sorted(freed))

    @cached_property
    def layout(self) -> TableLayout:
        """The bit fields and sizes of all loaded tables that the image writes."""
        return TableLayout(self.room, self.width)

    @cached_property
    def entries(self) -> list[StartEntry]:
        """The entries of all modes, mode by mode: each form, once for each root of a run."""
        return list_entries(self.modes)

    @cached_property
    def places(self) -> Sequence[TableAllocation]:
        """The rows that each entry occupies in the loaded tables, in the order of `entries`.

        An entry is one form of a mode, for one root if runs choose the root.
        """
        return self.kept or allocate_entries(self.room, self.entries)

    @property
    def _written_entries(self) -> list[tuple[TableAllocation, StartEntry]]:
        """The entries (forms, each for a root) that this image writes, with their table rows."""
        fills = self.fills or range(len(self.modes))
        return [
            each for each in zip(self.places, self.entries, strict=True) if each[1].mode in fills
        ]

    @cached_property
    def program(self) -> Program:
        """The program that the fabric executes once the image is loaded."""
        return program_from_modes(self.modes, self.room)

    @property
    def settle_cycles(self) -> int:
        """Clock edges from the last word until the output `loaded` of the loader is valid."""
        return LOADED_CYCLES

    @cached_property
    def words(self) -> list[int]:
        """All words of the image, 32 bits each."""
        filled = sum(
            1 << k for k in (*(place.number for place, _ in self._written_entries), *self.freed)
        )
        found = [MAGIC, self.room.digest(self.width), int(self.program.digest[:8], 16)]
        words = range(self.layout.fill_words)
        found += [filled >> PIECE_BITS * k & (1 << PIECE_BITS) - 1 for k in words]
        found += [self.base, *self._table_words(), END_MARK]
        return [*found, zlib.crc32(np.array(found, "<u4").tobytes())]

    @property
    def loaded_state(self) -> tuple[int, int, int]:
        """The state of the hardware `ImageLoader` after it has taken this image: three integers.

        They are the mask of the entries (forms of modes, each for one root) that may run, the
        digest of the program, and the last word of the image.
        """
        there = sum(1 << place.number for place in self.places)
        return there, self.words[2], self.words[-1]

    @cached_property
    def contents(self) -> Contents:
        """The values of all table rows, as ``contents[owner][table][row]``.

        Owners 0 to N - 1 are the N nodes; each further owner is a table of which the fabric has
        only one. The value is `UNUSED_ROW` for a row that this image does not write.
        """
        return table_contents(self.layout, self._written_entries, self.freed)

    def _table_words(self) -> Iterator[int]:
        """Yield the words of all row runs: header, first row, and a word for each row of a run.

        A row run writes consecutive rows of one piece, which is a range of columns of a table. For
        each piece, the rows that are equal in all nodes come first, then the other rows, node by
        node.
        """
        nodes, tables = self.room.nodes, self.layout.table_sizes
        for owners in (range(nodes), *([owner] for owner in range(nodes, len(tables)))):
            for number, piece in enumerate(split_into_pieces(tables[owners[0]])):
                rows = np.array(
                    [_piece_values(self.contents[owner][piece.table], piece) for owner in owners]
                )
                alike = (rows == rows[0]).all(axis=0) & (rows[0] != UNUSED_ROW) & (len(owners) > 1)
                yield from self._piece_words(ALL_NODES, number, rows[0], alike)
                for owner, own in zip(owners, rows, strict=True):
                    yield from self._piece_words(owner, number, own, (own != UNUSED_ROW) & ~alike)

    def _piece_words(
        self, owner: int, piece: int, rows: IntArray, which: BoolArray
    ) -> Iterator[int]:
        """Yield the words of the row runs (header, first row, data) for one piece of one owner.

        A piece is a range of columns of a table. An owner is a node, or a table that exists once.
        `owner` and `piece` are the numbers in the headers. `rows` has the bits of the piece in all
        rows, and `which` is True for the rows to write.
        """
        # A run that bridges a gap writes zeros into the rows of the gap. This is allowed only in a
        # full image: in a partial image these rows may belong to a mode that stays. It is not
        # allowed in a run of one node, since an earlier run with ALL_NODES may have written the
        # rows of the gap. A run with ALL_NODES may bridge, since the runs of single nodes follow.
        whole = not self.fills and owner >= self.room.nodes
        for start, end in _row_runs(np.flatnonzero(which).tolist(), LONGEST_GAP if whole else 0):
            yield owner | piece << PIECE_AT | (end - start - 1) << ROWS_AT
            yield start
            yield from np.maximum(rows[start:end], 0).tolist()

    @property
    def facts(self) -> list[dict[str, Any]]:
        """For each mode a dict: ``mode``, ``collective``, ``algorithm``, ``root`` and ``cycles``.

        ``cycles`` has formulas, each for a range of message lengths, for the cycles of a run.
        """
        return [
            {
                "mode": number,
                "collective": self.program.name_of(mode),
                "algorithm": mode.algorithm_names,
                "root": "any" if mode.any_root else mode.collective.root,
                "cycles": [piece._asdict() for piece in mode.cycle_pieces(self.room.flits)],
            }
            for number, mode in enumerate(self.program.modes)
        ]

    def save(self, path: str | Path) -> None:
        """Write the words and the schedules to a file."""
        texts = [
            [_schedule_text(form.program.schedule) for form in mode.forms] for mode in self.modes
        ]
        served = [[mode.any_root, *mode.starts] for mode in self.modes]
        facts = {
            "modes": self.facts,
            "schedules": texts,
            "served": served,
            "places": [*self.kept],
        }
        tail = zlib.compress(json.dumps(facts).encode())
        with open_for_writing(path) as file:
            file.write(np.array(self.words, "<u4").tobytes() + tail)


def _piece_values(rows: Sequence[int], piece: TablePiece) -> IntArray:
    """Return the bits of one piece (a range of columns of a table), for each row of the table.

    `rows` has the values of whole rows; a value `UNUSED_ROW` stays as it is.
    """
    values = np.array(rows, object)
    cut = values >> piece.low & (1 << piece.width) - 1
    return np.where(values == UNUSED_ROW, UNUSED_ROW, cut).astype(int)


def _schedule_text(schedule: Schedule) -> str:
    """Return the JSON text of a schedule."""
    if isinstance(schedule, Lifted) and schedule.collective.without:
        schedule = schedule.part
    with TemporaryDirectory() as folder:
        name = Path(folder) / "schedule.json"
        schedule.save(name)
        return name.read_text()


def _schedule_from_text(text: str) -> Schedule:
    """Return the schedule of a JSON text, after a check, because the file may have been changed."""
    return recognise(parse_schedule(parse_json(str.encode(text))))


def _make_fitting_image(
    room: Room, wanted: Iterable[ModeRequest], make: Callable[[Sequence[LoadableMode]], Image]
) -> Image:
    """Return the image of some modes, with as many of their forms as fit into a fabric.

    If not all forms fit, each mode keeps only its form for the longest messages. `wanted` has, for
    each mode, its schedules and True if each run chooses the root. `make` is a function that makes
    the image from loadable modes.
    """
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
        return make([mode.mode_of_longest_form for mode in modes])


class LoadedFabric(NamedTuple):
    """The properties of a loaded fabric on which its images depend.

    Parameters
    ----------
    room : Room
        Capacity of the fabric.
    width : int
        Bits of a flit.
    modes : list of list
        The modes that the fabric was built with, as `mode_entry` describes them.
    bus : str or None
        Protocol of the bus in front of the host port; None without a bus.
    manifest : mapping of str to object
        Contents of the manifest file; empty if none has been read.
    """

    room: Room
    width: int
    modes: list[list[Any]]
    bus: str | None = None
    manifest: Mapping[str, Any] = MappingProxyType({})


def mode_entry(mode: Mode) -> list[Any]:
    """Return the collective and the root of a mode and, if a user lists its messages, these.

    For example ``["broadcast", "any"]``: each run chooses the root. A third entry is a dict with
    the key ``counts`` or ``traffic``.
    """
    collective = mode.collective
    listed = [collective.listed_messages] if collective.listed_messages else []
    return [collective.name, "any" if mode.any_root else collective.root, *listed]


def read_fabric(path: str | PathLike[str]) -> LoadedFabric:
    """Read the manifest of a loaded fabric, and return the properties that its images need.

    Parameters
    ----------
    path : str or path-like
        The manifest, a JSON file that was written beside the Verilog.

    Raises
    ------
    InputError
        If the manifest is incomplete or was changed, or if its fabric has fixed tables.
    """
    require_complete_set(path)
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
        modes = [[str(name), *others] for name, *others in tables["modes"]]
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
        If the file is incomplete or for another fabric, or if its words differ from those that its
        schedules give.
    """
    raw = read_bytes(path, "Image")
    head = np.frombuffer(raw[: len(raw) // 4 * 4], "<u4").tolist()
    at = FILL_MASK_INDEX + TableLayout(room, width).fill_words
    if len(head) <= at or head[0] != MAGIC:
        raise InputError(f"File {path} is not an image of version 2; make one by torusfabric image")
    digest = room.digest(width)
    if head[1] != digest:
        raise InputError(
            f"Image {path} is for another fabric ({head[1]:08x} in place of {digest:08x}); make "
            "it with the manifest of this one"
        )
    filled = sum(word << PIECE_BITS * k for k, word in enumerate(head[FILL_MASK_INDEX:at]))
    base, at = head[at], at + 1
    while at + 1 < len(head) and head[at] != END_MARK:
        at += HEADER_WORDS + (head[at] >> ROWS_AT) + 1
    end = at + 2
    if end > len(head) or zlib.crc32(raw[: 4 * at + 4]) != head[at + 1]:
        raise InputError(
            f"Image {path} is incomplete or damaged; make it again by torusfabric image"
        )
    try:
        tail = parse_json(decompress(raw[4 * end :]))
        modes = []
        for texts, (any_root, *starts) in zip(tail["schedules"], tail["served"], strict=True):
            forms = [
                loadable_form(_schedule_from_text(text), room.flits, room.parsed_operators(), room)
                for text in texts
            ]
            modes.append(LoadableMode(tuple(forms), tuple(map(int, starts)), bool(any_root)))
        kept = [
            TableAllocation(
                int(number), int(row), int(block), tuple([*map(int, each)] for each in named)
            )
            for number, row, block, named in tail["places"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Image {path} lacks its schedules, or they cannot be read ({error}); make it again "
            "by torusfabric image"
        ) from error
    entries = list_entries(modes)
    placed = [*zip(kept, entries, strict=False)]
    if len(kept) != len(entries) * bool(base) or not all(
        place.is_valid_for(room, entry.form) for place, entry in placed
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
