"""The command line that all applications share: options, files, costs and reports."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torusfabric as tf
from torusfabric.errors import TorusfabricError

from .system import System

__all__ = ["Outcome", "parse_torus", "run_command"]

#: A job that is done: its report, whose first entry is a sentence about the result; the elements
#: and their fabric; and a function that draws the picture of the application into a figure of
#: matplotlib. The names of a report have words joined by underscores.
Outcome = tuple[dict[str, Any], System, Callable[[Any], None]]


def run_command(
    about: str, add_options: Callable[[argparse.ArgumentParser], None],
    carry_out: Callable[[argparse.Namespace], Outcome], words: list[str] | None = None,
) -> int:  # fmt: skip
    """Carry out the command of an application, print its report, and return the exit status.

    The status is that of a `torusfabric` command: 0, 1 for bad input, 2 if a result is wrong.

    Parameters
    ----------
    about : str
        The text of ``--help``, with examples.
    add_options : function of ArgumentParser
        Adds the options for sizes.
    carry_out : function of Namespace -> Outcome
        Executes a job for these options.
    words : list of str, optional
        The words of the command, by default those of the process.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="seed of the random numbers")
    add("--engine", choices=["compiled", "amaranth"], default="compiled", help="the simulator")
    add("--verilog", type=Path, metavar="FILE", help="write the design as Verilog")
    add("--synth", metavar="TARGET", help="count LUTs for this device, such as ecp5-85k")
    add("--picture", type=Path, metavar="FILE", help="draw a picture of the job")
    add("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(words)
    try:
        if options.picture and find_spec("matplotlib") is None:
            raise tf.InputError("--picture needs matplotlib: pip install matplotlib")
        report, system, draw = carry_out(options)
        if options.verilog:
            options.verilog.write_text(tf.emit(system).text, encoding="utf-8")
        if options.picture:
            from matplotlib.figure import Figure

            figure = Figure(layout="constrained")
            draw(figure)
            figure.savefig(options.picture)
        if options.synth:
            found = tf.synthesize(system, options.synth)
            (element,) = (module for module in found.modules if module["name"] == "element")
            for name, costs in (("cost", found.fabric), ("cost_of_element", element)):
                report[name] = {kind: costs[kind] for kind in ("luts", "ffs", "brams", "dsps")}
    except (TorusfabricError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return getattr(error, "status", 1)
    lines = [f"{name.replace('_', ' '):24}{value}" for name, value in report.items()]
    print(json.dumps(report) if options.json else "\n".join(lines))
    return 0


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
    sides, like = " with equal sides" * equal, "x".join("4" * (dimensions or 2))
    raise tf.InputError(f"--torus must be a torus{sides}, such as {like}, not {text}")
