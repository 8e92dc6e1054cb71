"""Timing diagrams as data that WaveDrom reads, and pictures of them where it is installed."""

import importlib.util
import json
from dataclasses import dataclass
from typing import Any

from ..toolchain.extras import how_to_install

__all__ = ["INSTALL", "Diagram", "can_render"]

#: What makes pictures of diagrams.
INSTALL = how_to_install("diagrams")


@dataclass(frozen=True)
class Diagram:
    """A timing diagram.

    Parameters
    ----------
    name : str
        The name of its files, without an ending.
    meaning : str
        What it shows, in a sentence or two.
    waves : dict
        As WaveDrom reads it.
    """

    name: str
    title: str
    meaning: str
    waves: dict[str, Any]

    @property
    def json(self) -> str:
        """The text of a file for WaveDrom, one line of a file for each line of the picture."""
        lines = ",\n    ".join(map(json.dumps, self.waves["signal"]))
        others = {name: value for name, value in self.waves.items() if name != "signal"}
        rest = "".join(f',\n  "{name}": {json.dumps(value)}' for name, value in others.items())
        return f'{{\n  "signal": [\n    {lines}\n  ]{rest}\n}}\n'

    def svg(self) -> str:
        """The picture."""
        from yowasp_wavedrom import render

        return str(render(self.waves)) + "\n"


def can_render() -> bool:
    """Whether pictures can be made."""
    return importlib.util.find_spec("yowasp_wavedrom") is not None
