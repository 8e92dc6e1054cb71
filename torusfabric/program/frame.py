"""What may be loaded into a fabric: its `Frame`, which says all that its hardware is made of.

Where modes lie in tables that are loaded, and where others may, is a `Place` of each entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..collective import Operator
from ..errors import InputError
from ..toolchain.values import natural
from ..topology import IntArray, Topology, topology_from_json, without_faults
from .fields import Sources, Stage
from .loadable import Entry, Loadable, LoadableMode, entries_of, stacked
from .rewriting import loadable
from .settings import Table, settings

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Frame", "Place", "places_beside", "require_frame_size"]

#: Entries of modes, blocks that each node receives in all, and chunks: room for so many at least.
LEAST_ENTRIES, LEAST_BLOCKS, LEAST_CHUNKS = 4, 64, 16

#: Of rows for which room is asked, the share of different settings of each `Table` for which there
#: is. So many settings may all be different.
SHARES, LEAST_SETTINGS = (2, 2, 1, 2), 8

#: Of the cycles of a link, the most that a row may take at the least.
LONGEST_LEAST = 8

#: The most rows, and the most cycles from a row to the arrival of its words. Tools take minutes for
#: as many.
MOST_ROWS, MOST_DEPTH = 2**16, 2**12

#: Sources in words, by `Stage`.
SOURCES = ("in-port {}", "the second register of in-port {}", "the operator at in-port {}",
           "the second register of operator {}", "what is made at in-port {}", "injection port {}",
           "the word that changes nothing")  # fmt: skip

#: The most entries: each is compared with what is chosen at a start.
MOST_ENTRIES = 256


@dataclass(frozen=True)
class Frame:
    """What may be loaded into a fabric.

    Parameters
    ----------
    flits : int
        Of the longest message.
    operators : tuple of str
        None where nothing is combined.
    rows : int
        Of all modes together.
    depth : int
        The most cycles from the slot of a row to the arrival of its words.
    later : bool
        Whether in-ports and operators have second registers.
    late : bool
        Whether a mode may read all words later; see `Loadable.reads_late`.
    inputs : tuple of (tuple of (int, int)), or None
        The sources of each out-port, then of each operator, by `Stage` and number; then the
        memories that each reader reads, each with 0 behind it. None for all.
    settings : tuple of int
        Of each `Table` of a node: rows differ in no more, all modes together.
    roots : bool
        Whether a run may choose the root.
    entries, blocks, chunks : int
        The most entries of modes, a form and root each, blocks that nodes receive in all of them
        together, and chunks of a message.
    words : int
        Of the memory of an in-port.
    streams : bool
        Whether nodes have streams; then each finds by a table of its own what it has received, and
        `blocks` are the rows of that.
    lists : bool
        Whether that has the origin of each packet, too, so that nodes may lack some.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> frame = Frame.of([program], rows=64)
    >>> frame.depth, frame.words, frame.sources.identity
    (1, 128, 8)
    >>> frame == Frame.from_json(frame.to_json())
    True
    """

    topology: Topology
    flits: int
    operators: tuple[str, ...]
    rows: int
    depth: int
    later: bool
    late: bool
    inputs: tuple[tuple[tuple[int, int], ...], ...] | None
    settings: tuple[int, ...]
    roots: bool
    entries: int
    blocks: int
    chunks: int
    words: int
    streams: bool = False
    lists: bool = False

    def __post_init__(self) -> None:
        require_frame_size(self.rows, self.depth)

    @classmethod
    def of(
        cls,
        programs: Sequence[Program | LoadableMode],
        *,
        rows: int | None = None,
        depth: int | None = None,
        inputs: Sequence[Program] | None = None,
        streams: bool = False,
    ) -> Frame:
        """The frame of modes, or programs of one form each.

        Parameters
        ----------
        rows, depth : int, optional
            By default as many as these need.
        inputs : sequence of Program, optional
            Whose out-ports select what these do, beside those of the programs; by default every
            out-port has every input.
        """
        modes = [
            each if isinstance(each, LoadableMode) else LoadableMode((loadable(each),))
            for each in programs
        ]
        entries = entries_of(modes)
        forms = [entry.form for entry in entries]
        first = forms[0].program
        others, nodes = [*forms, *map(loadable, inputs or ())], first.topology.nodes
        needed = [form for form in forms if form.adds]
        frame = cls(
            topology=without_faults(first.topology),
            flits=first.flits,
            operators=tuple(each.name for each in needed[0].program.operators) if needed else (),
            rows=max(rows or 0, 1) if rows else sum(form.rows for form in forms),
            depth=depth or max(form.depth for form in others),
            later=any(form.later for form in others),
            late=bool(needed) and (inputs is None or any(form.reads_late for form in others)),
            inputs=None if inputs is None else _inputs(others, first.ports),
            settings=_settings(forms, rows or 0),
            roots=any(mode.any_root for mode in modes),
            entries=_power(len(forms), LEAST_ENTRIES),
            blocks=_power(
                stacked([form.block_rows(streams=streams) for form in forms])[1],
                LEAST_BLOCKS * (1 if streams else nodes),
            ),
            chunks=_power(max(form.chunks for form in others), LEAST_CHUNKS),
            # Plans around faults let more rest on their way.
            words=_power(
                max(form.words for form in others),
                nodes * first.flits * (2 if inputs is None else 1),
            ),
            streams=streams,
            lists=streams and (inputs is None or any(form.lacks for form in others)),
        )
        if frame.entries > MOST_ENTRIES:
            raise InputError(
                f"Entries of modes must be at most {MOST_ENTRIES} for loaded tables, not "
                f"{len(forms)}"
            )
        for form in forms:
            frame.check(form)
        places_beside(frame, entries)  # which refuses more than there is room for
        return frame

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.topology.ports

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.topology.nodes

    @cached_property
    def sources(self) -> Sources:
        """What out-ports and operators select from.

        Where there are operators all that arrives passes them, who change nothing of what is not
        combined, so that out-ports and memories take what they make.
        """
        ports = range(self.ports)
        later, adds = tuple(ports) if self.later else (), bool(self.operators)
        injections = tuple((k,) for k in ports)
        results = later if adds else ()
        return Sources(self.ports, later, adds, results, injections, made=adds)

    def numbers(self, named: Any) -> Any:
        """The numbers of sources that are named by stage and number, shape (.., 2); else -1."""
        sources, count = self.sources, max(self.ports, 1)
        table = np.full((len(Stage) + 1, count + 1), -1)
        for number, (stage, k) in enumerate(sources.listed):
            table[stage, k] = number
        if self.operators:
            table[Stage.PORT] = table[Stage.MADE]
        return table[named[..., 0], named[..., 1]]

    def out_port(self, port: int) -> tuple[int, ...]:
        """The numbers of the sources of an out-port: of injection ports its own."""
        if self.inputs is not None:
            return tuple(sorted({*self.numbers(np.array(self.inputs[port])).tolist()}))
        sources, adds = self.sources, bool(self.operators)
        passed = range(self.ports * adds, sources.first_injection)
        own = sources.first_injection + port
        return (*passed, own, *range(sources.identity, sources.identity + adds))

    def operand(self, port: int) -> tuple[int, ...]:
        """The numbers of the sources of the operator at an in-port."""
        if self.inputs is not None:
            named = np.array(self.inputs[self.ports + port])
            return tuple(sorted(self.numbers(named).tolist()))
        # Nothing is combined with what is made in the same cycle.
        sources, adds = self.sources, bool(self.operators)
        results = range(sources.first_result, sources.first_made)
        return (*results, *range(sources.first_injection, sources.identity + adds))

    def memories(self, port: int) -> tuple[int, ...]:
        """The memories that the reader of an out-port reads; the last is of what is sent."""
        if self.inputs is None:
            return tuple(range(self.ports + 1))
        return tuple(memory for memory, _ in self.inputs[2 * self.ports + port])

    def block_rows(self, form: Loadable) -> IntArray:
        """Rows of each table by which blocks are found that have been received."""
        return form.block_rows(streams=self.streams)

    def check(self, form: Loadable) -> None:
        """Refuse what does not fit.

        Raises
        ------
        InputError
            If it needs what the fabric has not.
        """
        program = form.program
        if without_faults(program.topology) != self.topology:
            raise InputError(
                f"Topology must be {self.topology.title} for this fabric, not "
                f"{program.topology.title}"
            )
        if program.flits != self.flits:
            raise InputError(f"Max flits must be {self.flits} for this fabric, not {program.flits}")
        if form.adds:
            names = tuple(each.name for each in program.operators)
            if not self.operators:
                raise InputError("Fabric must have operators for a reduction, node 0 has none")
            if names != self.operators:
                raise InputError(
                    f"Operators must be {', '.join(self.operators)} for this fabric, not "
                    f"{', '.join(names)}"
                )
        least = LONGEST_LEAST * self.topology.longest_link
        for what, most, needed in (
            ("rows", self.rows, form.rows),
            ("depth", self.depth, form.depth),
            ("cycles of a row at the least", least, form.least),
            ("chunks", self.chunks, form.chunks),
            ("blocks of nodes", self.blocks, int(self.block_rows(form).max())),
            ("words of a memory", self.words, form.words),
        ):
            self.check_count(what, most, needed)
        if form.reads_late and not self.late:
            raise InputError("Fabric must read later for this schedule, it cannot")
        if self.streams and form.lacks and not self.lists:
            raise InputError("Fabric must list origins for nodes that lack packets, it does not")
        self._check_inputs(form)

    @staticmethod
    def check_count(what: str, most: int, needed: int) -> None:
        """Refuse a schedule that needs more of something than there is."""
        if needed > most:
            raise InputError(
                f"Schedule must fit the {most} {what} of this fabric, not need {needed}"
            )

    def _check_inputs(self, form: Loadable) -> None:
        """Refuse words that out-ports, operators or readers cannot select."""
        names, settings = self.topology.port_names, [("out-port", form.select, self.out_port)]
        if self.operators:
            settings.append(("operator", form.operand, self.operand))
        for what, named, inputs in settings:
            found = self.numbers(named)
            for port, name in enumerate(names):
                fits = np.isin(found[:, :, port], inputs(port)) & (found[:, :, port] >= 0)
                wrong = np.argwhere((named[:, :, port, 0] >= 0) & ~fits)
                if len(wrong):
                    row, node = wrong[0].tolist()
                    stage, number = named[row, node, port].tolist()
                    at = names[number] if stage < Stage.INJECTION else number
                    self._refuse_input(f"{what} {name} of node {node}", SOURCES[stage].format(at))
        for port, name in enumerate(names):
            for memory in np.unique(form.reads[:, :, port, 0]).tolist():
                if memory >= 0 and memory not in self.memories(port):
                    whose = f"in-port {names[memory]}" if memory < self.ports else "what is sent"
                    self._refuse_input(f"the reader of out-port {name}", f"the memory of {whose}")

    @staticmethod
    def _refuse_input(where: str, source: str) -> None:
        raise InputError(
            f"Schedule must fit the inputs of this fabric, {where} has none from {source}"
        )

    def to_json(self) -> dict[str, Any]:
        """It as data, for a manifest."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        inputs = self.inputs and [[list(each) for each in port] for port in self.inputs]
        if not self.streams:
            del facts["streams"], facts["lists"]
        return facts | {
            "topology": self.topology.to_entry(),
            "operators": list(self.operators),
            "settings": list(self.settings),
            "inputs": inputs,
        }

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Frame:
        """The frame that has been written into a manifest."""
        inputs = facts["inputs"] and tuple(
            tuple((int(a), int(b)) for a, b in port) for port in facts["inputs"]
        )
        return cls(
            **facts
            | {
                "topology": topology_from_json(facts["topology"]),
                "operators": tuple(facts["operators"]),
                "settings": tuple(map(int, facts["settings"])),
                "inputs": inputs,
            }
        )

    def digest(self, width: int) -> int:
        """A number of 32 bits for what is made of this frame, with flits of so many bits."""
        text = json.dumps([self.to_json(), width], sort_keys=True)
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

    def parsed_operators(self) -> tuple[Operator, ...]:
        """The operators."""
        return tuple(map(Operator.parse, self.operators))


def require_frame_size(rows: int | None, depth: int | None) -> None:
    """Refuse more rows, or more cycles from a row to its words, than can be built."""
    natural("Rows", rows or 0, most=MOST_ROWS)
    natural("Depth", depth or 0, most=MOST_DEPTH)


def _power(needed: int, least: int) -> int:
    """The least power of two that is enough."""
    return 1 << (max(needed, least) - 1).bit_length()


def _settings(forms: Sequence[Loadable], asked: int) -> tuple[int, ...]:
    """Settings of each table for which there is room: what forms need, or a share of rows."""
    rows = asked or sum(form.rows for form in forms)
    return tuple(
        max(len(found), min(rows, max(-(-asked // share), LEAST_SETTINGS)))
        for share, (_, found) in zip(SHARES, settings(forms), strict=True)
    )


def _inputs(forms: Sequence[Loadable], ports: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What each out-port, operator and reader selects in some forms."""
    found = []
    idle = {"select": Stage.PORT, "operand": Stage.RESULT}
    for name, stage in idle.items():
        for port in range(ports):
            each = [getattr(form, name)[:, :, port].reshape(-1, 2) for form in forms]
            named = np.concatenate(each)
            known = {(int(a), int(b)) for a, b in np.unique(named[named[:, 0] >= 0], axis=0)}
            found.append(tuple(sorted(known)) or ((int(stage), port),))
    for port in range(ports):
        read = np.unique(np.concatenate([form.reads[:, :, port, 0].ravel() for form in forms]))
        found.append(tuple((k, 0) for k in read[read >= 0].tolist()) or ((ports, 0),))
    return tuple(found)


class Place(NamedTuple):
    """Where an entry lies in the tables of the sequencer, and of nodes.

    Parameters
    ----------
    number : int
        Its own; the first of a mode has that of the mode.
    row, block : int
        The first of its rows, and of those by which its blocks are found.
    settings : tuple of (sequence of int)
        By `Table`, the setting that each of its rows names.
    """

    number: int
    row: int
    block: int
    settings: tuple[Sequence[int], ...]

    def fits(self, frame: Frame, form: Loadable) -> bool:
        """Whether a form may lie there."""
        return (
            0 <= self.number < frame.entries
            and 0 <= self.row <= frame.rows - form.rows
            and 0 <= self.block <= frame.blocks - frame.block_rows(form).max()
            and [*map(len, self.settings)] == [form.rows] * len(Table)
            and all(0 <= min(each) <= max(each) < most
                    for each, most in zip(self.settings, frame.settings, strict=True))
        )  # fmt: skip


def places_beside(
    frame: Frame, entries: Sequence[Entry], staying: Sequence[tuple[Place, Loadable]] = ()
) -> list[Place]:
    """Where entries may lie, while others stay where they are.

    What a mode has besides its first entry lies behind all modes: the last number first, so that of
    those that serve for a length the one with the least number is for the longest messages.

    Raises
    ------
    InputError
        If there is no room.
    """
    others, forms = [place for place, _ in staying], [entry.form for entry in entries]
    where = "beside other modes of this fabric" if staying else "for this fabric"

    def refuse(what: str, most: int, needed: int) -> None:
        if needed > most:
            raise InputError(f"{what} must be at most {most} {where}, not {needed}")

    def stack(
        what: str, most: int, taken: Iterable[int], of: Callable[[Loadable], IntArray]
    ) -> list[int]:
        """Take the first rows that are free, side by side."""
        there = zip(taken, (of(form) for _, form in staying), strict=True)
        found, needed = stacked([of(form) for form in forms], [*there])
        refuse(what, most, needed)
        return found

    rows = stack("Rows", frame.rows, (at.row for at in others), lambda form: np.array([form.rows]))
    blocks = stack("Blocks of nodes", frame.blocks, (at.block for at in others), frame.block_rows)
    refuse("Entries of modes", frame.entries - len(others), len(forms))
    numbers = _numbers(frame, entries, {place.number for place in others})
    named: list[list[list[int]]] = [[] for _ in forms]
    for table, count, (of, known) in zip(Table, frame.settings, settings(forms), strict=True):
        free = sorted({*range(count)}.difference(*(place.settings[table] for place in others)))
        refuse(f"Settings of table {table.name.lower()}", len(free), len(known))
        ends = accumulate(form.rows for form in forms)
        for mine, form, end in zip(named, forms, ends, strict=True):
            mine.append([free[k] for k in of[end - form.rows : end].tolist()])
    return [*map(Place, numbers, rows, blocks, map(tuple, named))]


def _numbers(frame: Frame, entries: Sequence[Entry], taken: set[int]) -> list[int]:
    """The numbers of entries, while others are taken."""
    first = {entry.mode: k for k, entry in reversed([*enumerate(entries)])}
    if not taken.isdisjoint(first):
        raise InputError(f"Modes must be of numbers that are free, not {max(first)}")
    free = iter(sorted({*range(frame.entries)} - taken - first.keys(), reverse=True))
    return [entry.mode if first[entry.mode] == k else next(free)
            for k, entry in enumerate(entries)]  # fmt: skip
