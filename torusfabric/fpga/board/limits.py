"""The largest torus that a board holds: what is on record, and how it is found out.

Whether an image fits is known for certain only when place and route has found room for all of it
and the clock is reached. That takes minutes, so the answer is kept with the board: for one kind of
fabric, the square tori with an all-gather, because they are what people ask for first.
"""

import json
from dataclasses import dataclass, fields
from pathlib import Path

from ...errors import InputError, WorkFailed

__all__ = ["Attempt", "Limit", "Misfit", "find_limit", "square", "try_board"]

#: Sides of the squares that are tried at most.
MOST = 32


class Misfit(WorkFailed):
    """Place and route found no room on the device, or not in time for its clock."""


@dataclass(frozen=True)
class Limit:
    """The largest square torus whose self-test image fits onto a board.

    Parameters
    ----------
    side : int
        Nodes in a row and in a column.
    measured : str
        The board on which place and route made this one fit, and for the next one found no room or
        no end in a time that anybody would wait: the board's own name, or another one's with the
        same device. Empty if it is an estimate, from what synthesis alone counts.
    collective, algorithm : str
    width : int
        Bits of a flit; a message has one flit for each of its chunks.
    """

    side: int
    measured: str = ""
    collective: str = "allgather"
    algorithm: str = "hamiltonian"
    width: int = 8

    @property
    def sides(self):
        """The torus, as it is written."""
        return f"{self.side}x{self.side}"

    @property
    def what(self):
        """The torus, and what the figure holds for."""
        return f"{self.sides} {self.collective} of {self.width} bits"

    def holds_for(self, fabric):
        """Whether a fabric differs from those of this limit in its sides alone."""
        schedule = fabric.program.schedule
        sides = getattr(schedule.topology, "sides", ())
        return (
            len(sides) == 2
            and (schedule.collective.kind, schedule.algorithm) == (self.collective, self.algorithm)
            and (fabric.width, fabric.flits) == (self.width, schedule.chunks)
        )

    def describe(self, board):
        """One clause of an error: what fits, and how that is known."""
        if not self.measured:
            return f"{self.what} fits by an estimate"
        place = "" if self.measured == board else f" on {self.measured}, which has the same device,"
        return f"place and route{place} fits up to {self.what}"

    def to_json(self):
        """As a plain dict."""
        return dict(vars(self))

    def entry(self):
        """As it is written in a board's file: what is as usual is left out."""
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        values = [f"{f.name}={json.dumps(getattr(self, f.name))}" for f in changed]
        return f"Limit({', '.join(values)})"


@dataclass(frozen=True)
class Attempt:
    """A build that was tried: its side, whether it fits, and its resources or why not."""

    side: int
    fits: bool
    why: str


def find_limit(attempt, *, start=2, most=MOST, progress=None):
    """The largest side that fits: up by growing steps, then the gap is halved.

    Parameters
    ----------
    attempt : function of int -> Attempt
        Builds the square torus of a side.
    start, most : int
        The sides that are tried first and at most. A good guess saves builds.
    progress : function of Attempt, optional
        Called after each one.

    Returns
    -------
    side : int or None
        None if not even the smallest torus fits.
    attempts : list of Attempt
        In the order they were tried.
    """
    attempts = []

    def fits(side):
        found = attempt(side)
        attempts.append(found)
        if progress is not None:
            progress(found)
        return found.fits

    low, high, step = 1, min(start, most), 1
    while fits(high):
        if high == most:
            return most, attempts
        low, high, step = high, min(high + step, most), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return (low if low > 1 else None), attempts


def square(side, *, collective="allgather", width=8):
    """The fabric of a square torus, by the algorithm that is taken by default."""
    from ...algorithms import Options, choose
    from ...collective import parse_collective
    from ...program import compile_program
    from ...rtl import build_fabric
    from ...topology import parse_topology

    topology = parse_topology(f"{side}x{side}")
    wanted, options = parse_collective(collective, nodes=topology.nodes), Options()
    schedule = choose(topology, wanted, options)(topology, wanted, options)
    return build_fabric(compile_program(schedule), width=width)


def try_board(board, folder, *, width=8, cache=None):
    """How to try a square torus on a board, for `find_limit`.

    Parameters
    ----------
    board : Board
    folder : path
        Where the builds go, each in a folder of its own.
    width : int
    cache : Cache, optional

    Returns
    -------
    function of int -> Attempt
    """
    from .build import build

    if width < 1:
        raise InputError(f"Width must be at least 1, not {width}")

    def attempt(side):
        fabric = square(side, width=width)
        try:
            built = build(fabric, board, Path(folder, f"{side}x{side}"), cache=cache)
        except Misfit as error:
            return Attempt(side, False, str(error).split(" (log: ")[0])
        resources = built.report["resources"]
        used = [
            f"{resources[k]['used']} of {resources[k]['available']} {k}"
            for k in _SCARCE
            if k in resources
        ]
        return Attempt(side, True, ", ".join([*used, f"{built.report['fmax_mhz']} MHz"]))

    return attempt


#: What place and route calls logic cells and block RAMs, which run out first.
_SCARCE = ("ICESTORM_LC", "ICESTORM_RAM", "TRELLIS_COMB", "DP16KD", "LUT4", "BSRAM")
