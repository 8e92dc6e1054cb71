"""The command line that all applications share: options, files, costs and reports."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torusfabric as tf
from torusfabric.errors import TorusfabricError

from .system import System

__all__ = ["Report", "add_common_options", "hardware_costs", "run_command", "write_verilog"]

#: The result of a job as plain data, by name.
Report = dict[str, Any]

#: The figures of a synthesis that a report has.
COSTS = ("luts", "ffs", "brams", "dsps")


def add_common_options(parser: argparse.ArgumentParser, *, data: str, picture: str) -> None:
    """Add the options that all applications have.

    Parameters
    ----------
    parser : ArgumentParser
        The parser, which has the options for sizes.
    data : str
        Name of the random data, such as ``points``.
    picture : str
        What ``--picture`` draws, such as ``the time line``.
    """
    parser.add_argument("--seed", type=int, default=1, help=f"seed of the random {data}")
    parser.add_argument("--engine", choices=["compiled", "amaranth"], default="compiled",
                        help="the simulator")  # fmt: skip
    parser.add_argument("--verilog", type=Path, metavar="FILE", help="write the whole design")
    parser.add_argument("--synth", metavar="TARGET", help="print LUTs, as of ecp5-85k")
    parser.add_argument("--picture", type=Path, metavar="FILE", help=f"draw {picture}")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


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


def run_command(
    name: str,
    arguments: argparse.Namespace,
    carry_out: Callable[[argparse.Namespace], Report],
    report_lines: Callable[[Report], dict[str, str]],
) -> int:
    """Carry out the options of an application, and print its report; return the exit status.

    The status is that of a `torusfabric` command: 0, 1 for bad input, 2 if a result is wrong.

    Parameters
    ----------
    name : str
        Name of the application, for messages.
    arguments : Namespace
        The options.
    carry_out : function of Namespace -> Report
        Executes a job, and returns its report.
    report_lines : function of Report -> dict
        Returns the first line of the printed report under an empty name, then its other lines.
    """
    try:
        report = carry_out(arguments)
    except TorusfabricError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.status
    if arguments.json:
        print(json.dumps(report))
        return 0
    lines = report_lines(report)
    titles = {"cost": "cost", "cost_of_element": "of an element"}
    lines |= {title: str(report[key]) for key, title in titles.items() if key in report}
    print(lines.pop(""))
    width = max(map(len, lines)) + 2
    for title, text in lines.items():
        print(f"{title:{width}}{text}")
    return 0
