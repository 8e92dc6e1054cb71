"""The command line that all applications share: options, files, costs and reports."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torusfabric as tf
from torusfabric.errors import TorusfabricError

from .system import System

__all__ = ["Application", "Report", "hardware_costs", "load_pyplot", "parse_torus",
           "write_verilog"]  # fmt: skip

#: The result of a job as plain data, by name.
Report = dict[str, Any]

#: The figures of a synthesis that a report has.
COSTS = ("luts", "ffs", "brams", "dsps")


class Application(NamedTuple):
    """An application as a command.

    Parameters
    ----------
    name : str
        Name of the application, for messages.
    description : str
        The text of ``--help``, with examples.
    data : str
        Name of the random data, such as ``points``.
    picture : str
        The content of the picture that ``--picture`` draws, such as ``the time line``.
    add_options : function of ArgumentParser
        Adds the options for sizes.
    carry_out : function of Namespace -> Report
        Executes a job, and returns its report.
    report_lines : function of Report -> dict
        Returns the first line of the printed report under an empty name, then its other lines.
    """

    name: str
    description: str
    data: str
    picture: str
    add_options: Callable[[argparse.ArgumentParser], None]
    carry_out: Callable[[argparse.Namespace], Report]
    report_lines: Callable[[Report], dict[str, str]]

    def main(self, words: list[str] | None = None) -> int:
        """Carry out the command, and print its report; return the exit status.

        The status is that of a `torusfabric` command: 0, 1 for bad input, 2 if a result is wrong.
        """
        arguments = self._parse_options(words)
        try:
            report = self.carry_out(arguments)
        except TorusfabricError as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return error.status
        if arguments.json:
            print(json.dumps(report))
            return 0
        lines = self.report_lines(report)
        titles = {"cost": "cost", "cost_of_element": "of an element"}
        lines |= {title: str(report[key]) for key, title in titles.items() if key in report}
        print(lines.pop(""))
        width = max(map(len, lines)) + 2
        for title, text in lines.items():
            print(f"{title:{width}}{text}")
        return 0

    def _parse_options(self, words: list[str] | None) -> argparse.Namespace:
        """Return the options for sizes, and those that all applications have."""
        parser = argparse.ArgumentParser(
            description=self.description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.add_options(parser)
        add = parser.add_argument
        add("--seed", type=int, default=1, help=f"seed of the random {self.data}")
        add("--engine", choices=["compiled", "amaranth"], default="compiled", help="the simulator")
        add("--verilog", type=Path, metavar="FILE", help="write the whole design")
        add("--synth", metavar="TARGET", help="print LUTs, as of ecp5-85k")
        add("--picture", type=Path, metavar="FILE", help=f"draw {self.picture}")
        add("--json", action="store_true", help="print the report as JSON")
        return parser.parse_args(words)


def parse_torus(text: str, dimensions: int = 0, *, equal: bool = False) -> tf.Torus:
    """Return the torus of the option ``--torus``.

    Parameters
    ----------
    text : str
        The option.
    dimensions : int
        The number of sides that the torus must have; 0 for any number.
    equal : bool
        True if the sides must be equal.

    Raises
    ------
    InputError
        If the option names another topology.
    """
    torus = tf.parse_topology(text)
    if (isinstance(torus, tf.Torus) and dimensions in (0, torus.dimensions)
            and not (equal and len({*torus.sides}) > 1)):  # fmt: skip
        return torus
    sides = f" with {dimensions}{' equal' * equal} sides" if dimensions else ""
    like = "x".join("4" * (dimensions or 2))
    raise tf.InputError(f"--torus must be a torus{sides}, such as {like}, not {text}")


def load_pyplot() -> Any:
    """Return matplotlib's module of plots, which writes files and opens no window."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise tf.InputError("--picture needs matplotlib: pip install matplotlib") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def write_verilog(system: System, path: Path | None) -> None:
    """Write elements and fabric as one Verilog file, if the user names one."""
    if path is not None:
        path.write_text(tf.emit(system).text, encoding="utf-8")


def hardware_costs(system: System, target: str | None) -> Report:
    """Return the costs of the whole and of an element on a device; empty without a device."""
    if target is None:
        return {}
    found = tf.synthesize(system, target)
    (element,) = (module for module in found.modules if module["name"] == "element")
    return {
        "cost": {name: found.fabric[name] for name in COSTS},
        "cost_of_element": {name: element[name] for name in COSTS},
    }
