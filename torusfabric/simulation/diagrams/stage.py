"""A fabric in Amaranth's simulator, some of whose ports are written down cycle by cycle."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from amaranth.hdl import Value
from amaranth.sim import SimulatorContext

from ...errors import WorkFailed
from ...rtl.assembly import Assembly

__all__ = ["Watched", "Play", "Scene", "Sketch", "Stage"]


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
