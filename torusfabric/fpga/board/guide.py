"""What a person does with a board once there is an image for it, and what its lamps say."""

from typing import NamedTuple

from ...toolchain.quoting import shell_command
from ..selftest import BAUD
from ..selftest.facts import Facts
from ..selftest.job_facts import choices_in, job_facts
from .catalogue import Board

__all__ = ["LIST_PORTS", "Step", "lamp_meanings", "steps_of"]

#: Lists the serial ports of this machine.
LIST_PORTS = "python -m serial.tools.list_ports"

_SHOWN = {
    "running": "while it runs",
    "passed": "after a pass",
    "failed": "after a failure",
    "status": "after a pass; blinking after a failure",
}

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


def steps_of(
    board: Board, flash: str | None, loads: str, facts: Facts, *, baud: int = BAUD
) -> list[Step]:
    """What to do after a build.

    Parameters
    ----------
    board : Board
    flash : str or None
        The command that loads the image; None where that is done.
    loads : str
        The command of the programmer that it runs.
    facts : dict
        What the image is.
    baud : int
        Bits a second of the serial line.
    """
    options = "" if baud == BAUD else f" --baud {baud}"
    port = shell_command([board.port])
    make = f"import numpy as np; np.save('data.npy', {_data(job_facts(facts))})"
    first = [Step(flash, f"load it ({loads}); it tests itself at once")] if flash else []
    run = f"torusfabric run {port}{options}{_mode(facts)} data.npy -o received.npy"
    return [
        *first,
        Step(f"torusfabric monitor {port}{options}", "ask for the result, and test again"),
        Step(f'python -c "{make}"', "data: a row of words for each node"),
        Step(run, "send it through"),
    ]


def _data(facts: Facts) -> str:
    """An array of words that every node can send, in Python."""
    nodes, words, most = facts["nodes"], facts["send_words"], 1 << facts["width"]
    within = f" % {most}" if nodes * words > most else ""
    return f"np.arange({nodes * words}).reshape({nodes}, {words}){within}"


def _mode(facts: Facts) -> str:
    """The option that chooses the first of several collectives."""
    if "mode" not in choices_in(facts):
        return ""
    names = [mode["collective"] for mode in facts["modes"]]
    return f" --mode {names[0] if names.count(names[0]) == 1 else 0}"
