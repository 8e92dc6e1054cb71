"""The largest torus that a board holds, as it is recorded in the board's file.

Whether a bitstream fits is known for certain only when place and route has found room for all of it
and the clock is reached. That takes minutes, so the answer is kept with the board: for one series
of fabrics, the square tori with an all-gather, because they are what people ask for first.
"""

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from ...errors import WorkFailed

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric
    from ...schedule import Schedule

__all__ = ["Limit", "Misfit"]


class Misfit(WorkFailed):
    """Place and route found no room on the device, or did not reach the clock of the board."""


@dataclass(frozen=True)
class Limit:
    """The largest square torus whose bitstream fits onto a board.

    Parameters
    ----------
    side : int
        Nodes in a row and in a column.
    measured : str
        The board on which place and route made this one fit, and for the next one found no room or
        no end in a time that anybody would wait: the board's own name, or another one's with the
        same device. Empty if it is an estimate, from what synthesis alone counts.
    width : int
        Bits of a flit; a message has one flit for each of its chunks.
    """

    side: int
    measured: str = ""
    collective: str = "allgather"
    algorithm: str = "hamiltonian"
    width: int = 8

    @property
    def sides(self) -> str:
        """The side lengths of the torus, as they are written."""
        return f"{self.side}x{self.side}"

    @property
    def fabric(self) -> str:
        """The fabric that fits, in words."""
        return f"{self.sides} {self.collective} of {self.width} bits"

    def excludes(self, fabric: "Fabric") -> bool:
        """Whether a fabric is at least as large as the first that was measured not to fit."""
        sides = getattr(fabric.program.topology, "sides", ())
        return (
            bool(self.measured)
            and len(sides) == 2
            and fabric.nodes >= (self.side + 1) ** 2
            and fabric.width >= self.width
            and any(self._excludes(form.schedule, fabric.flits) for form in fabric.program.forms)
        )

    def _excludes(self, schedule: "Schedule", flits: int) -> bool:
        """Whether what is carried out is that of this limit, or more."""
        same = (schedule.collective.kind, schedule.algorithm) == (self.collective, self.algorithm)
        return same and flits >= schedule.chunks

    def describe(self, board: str) -> str:
        """One clause of an error: what fits, and whether that was measured.

        Parameters
        ----------
        board : str
            The name of the board that the error is about.
        """
        if not self.measured:
            return f"{self.fabric} fits by an estimate"
        device = (
            "" if self.measured == board else f" on {self.measured}, which has the same device,"
        )
        return f"place and route{device} fits up to {self.fabric}"

    def to_json(self) -> dict[str, Any]:
        """The limit as a plain dict."""
        return asdict(self)

    def entry(self) -> str:
        """The text of the limit in a board's file; default values are left out."""
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        values = [f"{f.name}={json.dumps(getattr(self, f.name))}" for f in changed]
        return f"Limit({', '.join(values)})"
