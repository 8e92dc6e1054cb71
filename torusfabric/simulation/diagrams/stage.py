"""A fabric in Amaranth's simulator, some of whose ports are written down, and what passes them."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from amaranth.hdl import Value
from amaranth.sim import SimulatorContext

from ...collective import expected_words
from ...errors import WorkFailed
from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric, Top
from ..engines.base import Job, longest_job

__all__ = ["Play", "Sample", "Scene", "Sketch", "Stage", "Watched", "sample"]


class Watched(NamedTuple):
    """A port, or some bits of one, that a diagram shows.

    Parameters
    ----------
    low : int
        The lowest of the bits.
    width : int, optional
        How many there are; all from there on by default.
    counts : bool
        Whether it may change with every edge: what it does then is left out where nothing else
        changes.
    """

    port: str
    low: int = 0
    width: int | None = None
    counts: bool = False


class Sketch(NamedTuple):
    """A diagram to be drawn.

    Parameters
    ----------
    watched : tuple of Watched
        None of a port that the fabric does not have is shown.
    """

    name: str
    title: str
    meaning: str
    watched: tuple[Watched, ...]


class Stage:
    """Sets inputs, and writes down inputs and outputs as each edge finds them.

    Parameters
    ----------
    watched : iterable of Watched
        What is written down.

    Attributes
    ----------
    shown : dict of Watched to list of int
        The values in each cycle.
    cycles : dict of str to (int, int)
        The first cycle of each diagram, and the one after the last.
    origin : int
        The cycle that is called 0.
    """

    def __init__(self, ctx: SimulatorContext, design: Assembly, watched: Iterable[Watched]) -> None:
        self._ctx, self._design = ctx, design
        self.shown: dict[Watched, list[int]] = {port: [] for port in watched}
        self._values = [_value(design, port) for port in self.shown]
        self.cycles: dict[str, tuple[int, int]] = {}
        self.now = self.origin = 0

    def set(self, **inputs: int) -> None:
        """Set inputs; those that the fabric does not have are left out."""
        for name, value in inputs.items():
            if hasattr(self._design, name):
                self._ctx.set(getattr(self._design, name), value)

    def get(self, name: str) -> int:
        """The value of a port."""
        return int(self._ctx.get(getattr(self._design, name)))

    async def edges(self, count: int = 1) -> None:
        """Pass some edges."""
        for _ in range(count):
            for values, value in zip(self.shown.values(), self._values, strict=True):
                values.append(int(self._ctx.get(value)))
            await self._ctx.tick()
            self.now += 1

    async def until(self, holds: Callable[[], bool], *, limit: int) -> None:
        """Pass edges until something holds.

        Raises
        ------
        WorkFailed
            If it does not within a number of edges.
        """
        last = self.now + limit
        while not holds():
            if self.now == last:
                raise WorkFailed(f"Fabric must come to an end within {limit} edges, not later")
            await self.edges()

    def begin(self, name: str) -> None:
        """Begin a diagram with this cycle."""
        self.cycles[name] = (self.now, self.now)

    def end(self, name: str) -> None:
        """End a diagram before this cycle."""
        self.cycles[name] = (self.cycles[name][0], self.now)


def _value(design: Assembly, watched: Watched) -> Value:
    port = getattr(design, watched.port)
    return port[watched.low : len(port) if watched.width is None else watched.low + watched.width]


#: Drives a fabric, and says when each diagram begins and ends.
Play: TypeAlias = Callable[[Stage], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Scene:
    """What happens to a fabric, and the diagrams that show it."""

    play: Play
    sketches: list[Sketch] = field(default_factory=list)


#: Words that are shown.
WORDS = 3

#: The most flits of a message where the length is chosen.
FLITS = 4

#: The first of the words sent.
FIRST = 0xA0


@dataclass(frozen=True)
class Sample:
    """What is sent and received in the run that diagrams show; all other words are 0.

    Parameters
    ----------
    job : Job
        What is chosen for the run.
    source, reader : int
        The node whose words are written, and that whose words are read.
    sent, received : tuple of (int, int)
        Parts of these words, and their numbers in these: of flits, or of beats as the ports of
        memories take them.
    words : tuple of int
        What is sent.
    """

    job: Job
    source: int
    reader: int
    sent: tuple[tuple[int, int], ...]
    received: tuple[tuple[int, int], ...]
    words: tuple[int, ...]


def sample(fabric: Fabric) -> Sample:
    """What a run shows of a fabric, in its first mode.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "alltoall"), flits=2), width=8)
    >>> found = sample(fabric)
    >>> found.source, found.reader, found.sent, found.received
    (0, 2, ((2, 0), (2, 1)), ((0, 0), (0, 1)))
    """
    job = longest_job(fabric)
    if job.length is not None:
        job = job._replace(length=min(FLITS, job.length))
    alone = fabric.program.part(fabric.program.form_of(job.mode, job.length))
    length, layout = job.length or fabric.flits, alone.layout
    collective = layout.blocks.collective
    group = layout.blocks.groups.members[0].tolist()
    root = group[job.root or collective.root or 0]
    source = group[0] if collective.from_each else root
    reader = root if collective.to_root else group[-1]
    if source == reader:
        source = group[-1] if collective.from_each else source
    part = group.index(reader) if collective.personal else 0
    count = min(WORDS, length)
    words = tuple((FIRST + k) % (1 << fabric.width) for k in range(count))
    messages = np.zeros((fabric.nodes, layout.send_words(length)), object)
    messages[source, part * length : part * length + count] = words
    operator = alone.form.operator_of(job.operation)
    expected, _ = expected_words(
        layout, messages, operator=operator, width=fabric.width, root=job.root
    )
    found = np.flatnonzero(expected[reader])[:count].tolist() or list(range(count))
    beat = 1 if fabric.top is Top.STREAM else fabric.beat
    sent = dict.fromkeys((part, flit // beat) for flit in range(count))
    received = dict.fromkeys((index // length, index % length // beat) for index in found)
    beats = tuple(_joined(words[k : k + beat], fabric.width) for k in range(0, count, beat))
    return Sample(job, source, reader, tuple(sent), tuple(received), beats)


def _joined(words: tuple[int, ...], width: int) -> int:
    """Flits side by side, the first in the lowest bits."""
    return sum(word << k * width for k, word in enumerate(words))
