"""The manifest: what a user of the Verilog has to know, as plain data."""

from collections.abc import Sequence
from typing import Any

from ..collective import OPERATORS, SIGNED, Operator
from ..program import Mode
from ..rtl.fabric import Fabric
from .interface import interface
from .ports import port_facts

__all__ = ["MANIFEST_VERSION", "TOP", "manifest"]

#: The name of the top module, after the prefix.
TOP = "fabric"

#: Counted up when a key changes its meaning or goes.
MANIFEST_VERSION = 1


def manifest(fabric: Fabric, *, command: str, files: list[str]) -> dict[str, Any]:
    """What a user of the Verilog has to know, as plain data.

    Parameters
    ----------
    fabric : Fabric
    command : str
        The command that makes the files.
    files : list of str
        The files beside the manifest.
    """
    program = fabric.program
    return {
        "manifest_version": MANIFEST_VERSION,
        "top": fabric.prefix + TOP,
        "prefix": fabric.prefix,
        "interface": (fabric.bus or fabric.top).value,
        "files": files,
        "ports": port_facts(fabric),
        "nodes": fabric.nodes,
        "width": fabric.width,
        "max_flits" if program.any_length else "flits": fabric.flits,
        **interface(fabric),
        **({} if program.any_length else {"predicted_cycles": fabric.predicted_cycles}),
        "modes": [_mode(fabric, number) for number in range(len(program.modes))],
        "topology": program.topology.to_json(),
        **({"operator": str(program.operators[0])} if len(program.operators) == 1 else {}),
        **_functions(program.operators),
        **_schedules(fabric),
        "router_classes": len(fabric.router_classes),
        "command": command,
    }


def _functions(operators: Sequence[Operator]) -> dict[str, dict[str, str]]:
    """Where a bench finds what operators of other packages make, if a function of a module says it.

    The bench computes words by the definition of a collective, which leaves the order open.
    """
    found = {
        operator.name: f"{operator.function.__module__}:{operator.function.__qualname__}"
        for operator in operators
        if operator.name not in (*OPERATORS, *SIGNED)
        and operator.associative
        and operator.function.__module__ != "__main__"
        and operator.function.__qualname__.isidentifier()
    }
    return {"operator_functions": found} if found else {}


def _schedules(fabric: Fabric) -> dict[str, Any]:
    """What is carried out: of several collectives, lists in the order of the modes."""
    each = [
        {
            "collective": mode.schedule.collective.to_json() | _chosen_root(mode),
            "algorithm": mode.schedule.algorithm,
            "chunks": mode.schedule.chunks,
            "rounds": mode.schedule.round_count,
            "schedule_digest": mode.schedule.digest,
        }
        for mode in fabric.program.modes
    ]
    if len(each) == 1:
        return each[0]
    return {name: [facts[name] for facts in each] for name in each[0]}


def _chosen_root(mode: Mode) -> dict[str, str]:
    """The root of a collective, where every run has one of its own."""
    return {"root": "any"} if mode.any_root else {}


def _mode(fabric: Fabric, number: int) -> dict[str, Any]:
    """What a run of a mode does, and how long it takes."""
    mode, layout = fabric.program.modes[number], fabric.layouts[number]
    schedule = mode.schedule
    collective = schedule.collective
    axes = range(schedule.topology.dimensions) if collective.axes is None else collective.axes
    return {
        "mode": number,
        "collective": collective.kind,
        "axes": list(axes),
        "root": collective.root if collective.rooted else None,
        **_chosen_root(mode),
        "algorithm": schedule.algorithm,
        "operators": [operator.name for operator in mode.operators],
        "chunks": schedule.chunks,
        "send_words": layout.send_words,
        "recv_words": layout.recv_words,
        "cycles": _cycles(mode),
    }


def _cycles(mode: Mode) -> list[dict[str, int]]:
    """The cycles of a run with n flits a chunk: constant + per_flit * n, each from some n on."""
    # What a fixed length makes of a schedule holds for it only.
    pieces = mode.timing.pieces(1 if mode.any_length else mode.loop.flits)
    return [
        {"from": piece.first, "constant": piece.constant, "per_flit": piece.per_flit}
        for piece in pieces
    ]
