"""What a person does with a board once there is a bitstream for it, and what its lamps say."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .catalogue import Board

__all__ = ["LIST_PORTS", "Step", "lamp_meanings", "steps_of"]

#: Lists the serial ports of this machine.
LIST_PORTS = "python -m serial.tools.list_ports"

_SHOWN = {"running": "during a run", "done": "after a run"}

_COLOURS = {"r": "red", "g": "green", "b": "blue"}


class Step(NamedTuple):
    """A command, and what it does."""

    command: str
    does: str


def lamp_meanings(board: Board) -> list[str]:
    """What each lamp of a board means when it is lit, by the name that its platform gives it."""
    meanings: dict[str, list[str]] = {}
    for lamp, (name, number, *part) in board.lamps.items():
        colour = _COLOURS.get(part[0] if part else name.rpartition("_")[2], "")
        meanings.setdefault(f"{name} {number}", []).append(f"{colour} {_SHOWN[lamp]}".strip())
    return [f"{lamp} {', '.join(shown)}" for lamp, shown in meanings.items()]


def steps_of(load: Sequence[Step], connection: str, report: Mapping[str, Any]) -> list[Step]:
    """What to do after a build.

    Parameters
    ----------
    load : sequence of Step
        What loads the bitstream, if that is to be done.
    connection : str
        The options that say which board it is.
    report : mapping
        Of the build.
    """
    nodes, words = report["nodes"], report["modes"][0]["send_words"]
    most = 1 << report["width"]
    within = f" % {most}" if nodes * words > most else ""
    data = f"np.arange({nodes * words}).reshape({nodes}, {words}){within}"
    make = f"import numpy as np; np.save('data.npy', {data})"
    return [
        *load,
        Step(f"torusfabric run {connection}", "run it, and compare every word and the cycles"),
        Step(f"torusfabric monitor {connection}", "watch it run whatever is drawn"),
        Step(f'python -c "{make}"', "data: a row of words for each node"),
        Step(f"torusfabric run {connection} --data data.npy -o received.npy", "send it through"),
    ]
