"""Images: what is loaded into the tables of a fabric, as words, and as a file.

An image is a list of words of 32 bits: the format and its version, the digest of the fabric, the
digest of the program, a bit for each mode that is filled, and the check of the image that has to be
there, or 0; then runs of rows of a piece of a table, each with a word that has the owner of the
table, the number of the piece and the rows less one, a word that has the first row, and a word for
each row; at last `END` and a check of all. Rows of which nobody asks are left out, and what is
equal at all nodes is there once. A file has behind them, for tools, the schedules of all modes, and
where these lie.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...program import Program
from ...program.frame import Frame, fitted, loadable_form
from ...program.loadable import Loadable
from ...schedule import Lifted, Schedule
from ...schedule.file import load
from ...toolchain.files import writing
from ...toolchain.reading import parse_json, read_bytes
from .contents import Contents, contents_of
from .layout import HEAD, RUN, Piece, TableLayout, pieces
from .loader import END, EVERY, MAGIC, PIECE_AT, ROWS_AT, SETTLE, There
from .places import Place, places_beside

#: So many rows of which nobody asks take no more words than another run of rows.
GAP = HEAD

__all__ = ["Image", "LoadedFabric", "read_fabric", "read_image"]


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


@dataclass(frozen=True, eq=False)
class Image:
    """What is loaded into the tables of a fabric.

    Parameters
    ----------
    frame : Frame
    width : int
        Bits of a flit.
    forms : sequence of Loadable
        One a mode, from mode 0 on.
    fills : sequence of int
        The modes that it fills, while others may run; by default all, and no run may be under way.
    kept : sequence of Place
        Where each mode lies; by default one behind the other.
    base : int
        Where it fills some modes, the check of the image that has the others.

    Raises
    ------
    InputError
        If they do not fit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    >>> image = Image.of(fabric.frame, fabric.width, [tf.plan("3x3", "alltoall")])
    >>> hex(image.words[0]), image.words[1] == fabric.digest, len(image.words)
    ('0x1494654', True, 174)
    """

    frame: Frame
    width: int
    forms: Sequence[Loadable]
    fills: Sequence[int] = ()
    kept: Sequence[Place] = ()
    base: int = 0

    @classmethod
    def of(cls, frame: Frame, width: int, schedules: Iterable[Schedule]) -> Image:
        """The image of schedules, one a mode."""
        forms = _forms(frame, schedules)
        frame.check_rows(forms)
        return cls(frame, width, forms)

    def with_modes(self, schedules: Iterable[Schedule], mode: int | None = None) -> Image:
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
        >>> later = fabric.image.with_modes(plans[2:], 0)
        >>> [mode["collective"] for mode in later.facts], len(later.words) < len(fabric.image.words)
        (['scatter', 'alltoall'], True)
        """
        made, forms = _forms(self.frame, schedules), list(self.forms)
        mode = len(forms) if mode is None else mode
        if not 0 <= mode <= len(forms):
            raise InputError(f"Mode must be from 0 to {len(forms)}, not {mode}")
        fills = range(mode, mode + len(made))
        forms[mode : mode + len(made)] = made
        self.frame.check_rows(forms)
        staying = {k: place for k, place in enumerate(self.places) if k not in fills}
        placed = places_beside(self.frame, made, [(staying[k], forms[k]) for k in staying])
        staying |= dict(zip(fills, placed, strict=True))
        places = [staying[k] for k in range(len(forms))]
        return Image(self.frame, self.width, forms, fills, places, self.words[-1])

    @cached_property
    def places(self) -> Sequence[Place]:
        """Where each mode lies."""
        return self.kept or places_beside(self.frame, self.forms)

    @cached_property
    def program(self) -> Program:
        """The program of the fabric once it is loaded."""
        return fitted(self.forms, self.frame)

    @property
    def settling(self) -> int:
        """Edges after the last word until `loaded` tells whether the image is there."""
        return SETTLE + 2

    @cached_property
    def words(self) -> list[int]:
        """Its words."""
        filled = sum(1 << k for k in self.fills or range(len(self.forms)))
        found = [MAGIC, self.frame.digest(self.width), int(self.program.digest[:8], 16)]
        found += [filled, self.base, *self._tables(), END]
        return [*found, zlib.crc32(np.array(found, "<u4").tobytes())]

    @property
    def there(self) -> There:
        """What is there once it is loaded."""
        program = int(self.program.digest[:8], 16)
        return There((1 << len(self.forms)) - 1, program, self.words[-1])

    @cached_property
    def contents(self) -> Contents:
        """The rows of tables of the modes that it fills."""
        placed = [*zip(self.places, self.forms, strict=True)]
        fills = self.fills or range(len(placed))
        return contents_of(TableLayout(self.frame), {k: placed[k] for k in fills})

    def _tables(self) -> Iterator[int]:
        """The words of tables."""
        nodes, tables = self.frame.nodes, TableLayout(self.frame).tables
        for number, piece in enumerate(pieces(tables[0])):
            each = [_cut(self.contents[node], piece) for node in range(nodes)]
            # All nodes name the same settings.
            there = [k for k, row in enumerate(each[0]) if row >= 0]
            alike = [k for k in there if len({rows[k] for rows in each}) == 1]
            yield from self._written(EVERY, number, each[0], alike)
            apart = sorted({*there} - {*alike})
            for node in range(nodes):
                yield from self._written(node, number, each[node], apart)
        for owner in range(nodes, len(tables)):
            for number, piece in enumerate(pieces(tables[owner])):
                rows = _cut(self.contents[owner], piece)
                there = [k for k, row in enumerate(rows) if row >= 0]
                yield from self._written(owner, number, rows, there)

    def _written(
        self, owner: int, piece: int, rows: Sequence[int], there: Sequence[int]
    ) -> Iterator[int]:
        """The words that write some rows of a piece."""
        # What nobody asks for may be of a mode that stays, or is written for all nodes.
        whole = not self.fills and owner >= self.frame.nodes
        for start, end in _runs(there, GAP if whole else 0):
            yield owner | piece << PIECE_AT | (end - start - 1) << ROWS_AT
            yield start
            yield from (max(row, 0) for row in rows[start:end])

    @property
    def facts(self) -> list[dict[str, Any]]:
        """What each mode does."""
        return [
            {
                "mode": number,
                "collective": self.program.name_of(mode),
                "algorithm": mode.algorithms,
                "root": mode.collective.root,
                "cycles": [piece._asdict() for piece in mode.pieces(self.frame.flits)],
            }
            for number, mode in enumerate(self.program.modes)
        ]

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        texts = []
        with TemporaryDirectory() as folder:
            for number, form in enumerate(self.forms):
                name = Path(folder) / f"{number}.json"
                schedule = form.program.schedule
                if isinstance(schedule, Lifted) and schedule.collective.without:
                    schedule = schedule.part
                schedule.save(name)
                texts.append(name.read_text())
        facts = {"modes": self.facts, "schedules": texts, "places": [*self.kept]}
        tail = zlib.compress(json.dumps(facts).encode())
        with writing(path) as file:
            file.write(np.array(self.words, "<u4").tobytes() + tail)


def _cut(tables: Sequence[Sequence[int]], piece: Piece) -> list[int]:
    """The rows of a piece."""
    mask = (1 << piece.width) - 1
    return [row if row < 0 else row >> piece.low & mask for row in tables[piece.of]]


def _forms(frame: Frame, schedules: Iterable[Schedule]) -> list[Loadable]:
    """What schedules do, as it can be loaded."""
    operators = frame.parsed_operators()
    return [loadable_form([each], frame.flits, operators, frame) for each in schedules]


class LoadedFabric(NamedTuple):
    """A fabric whose tables are loaded.

    Parameters
    ----------
    width : int
        Bits of a flit.
    modes : list of (str, int or None)
        What it is built with: collectives, and their roots.
    bus : str or None
        What it stands behind.
    """

    frame: Frame
    width: int
    modes: list[tuple[str, int | None]]
    bus: str | None = None


def read_fabric(path: str | PathLike[str]) -> LoadedFabric:
    """The fabric that a manifest describes.

    Raises
    ------
    InputError
        If it is none, or has no tables that are loaded.
    """
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
        frame, bus = Frame.from_json(tables["frame"]), facts.get("bus", {}).get("protocol")
        fabric = LoadedFabric(frame, int(facts["width"]), modes, bus)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"Manifest {path} must be whole, not without {error}") from error
    if f"{fabric.frame.digest(fabric.width):08x}" != tables["digest"]:
        raise InputError(f"Manifest {path} must be as it was written, not changed")
    return fabric


def read_image(path: str | PathLike[str], frame: Frame, width: int) -> Image:
    """Read an image from a file, and check it for a fabric.

    Raises
    ------
    InputError
        If it is torn, for another fabric, or not what its schedules make.
    """
    raw = read_bytes(path, "Image")
    head = np.frombuffer(raw[: len(raw) // 4 * 4], "<u4").tolist()
    if len(head) < 5 or head[0] != MAGIC:
        raise InputError(f"Image {path} must be an image of version 1, not something else")
    digest = frame.digest(width)
    if head[1] != digest:
        raise InputError(f"Image {path} must be for fabric {digest:08x}, not {head[1]:08x}")
    at = 5
    while at + 1 < len(head) and head[at] != END:
        at += HEAD + (head[at] >> ROWS_AT) + 1
    end = at + 2
    if end > len(head) or zlib.crc32(raw[: 4 * at + 4]) != head[at + 1]:
        raise InputError(f"Image {path} must be whole, not torn")
    try:
        tail = json.loads(zlib.decompress(raw[4 * end :]))
        with TemporaryDirectory() as folder:
            schedules = []
            for number, text in enumerate(tail["schedules"]):
                name = Path(folder) / f"{number}.json"
                name.write_text(text)
                schedules.append(load(name))
        kept = [Place(int(row), int(block), tuple([*map(int, each)] for each in named))
                for row, block, named in tail["places"]]  # fmt: skip
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise InputError(f"Image {path} must have its schedules behind it, not {error}") from error
    forms, base = _forms(frame, schedules), head[4]
    fills = [k for k in range(len(forms)) if base and head[3] >> k & 1]
    if len(kept) != len(forms) * bool(base) or not all(
        place.fits(frame, form) for place, form in zip(kept, forms, strict=False)
    ):
        raise InputError(f"Image {path} must say where each mode lies, not something else")
    image = Image(frame, width, forms, fills, kept, base)
    if image.words != head[:end]:
        raise InputError(f"Image {path} must be what its schedules make, not something else")
    return image
