"""torusfabric: switch fabrics for collective communication on torus networks.

Plan a collective, prove the schedule right, and build it.

>>> import torusfabric as tf
>>> schedule = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
>>> schedule.steps, tf.bound(schedule)
(4, 4)
>>> program = tf.compile(schedule, flits=2)
>>> program.cycles()
13
>>> fabric = tf.Fabric(program, width=8)
>>> tf.simulate(fabric).passed
True

Each name is imported when it is first used. Why: planning does not wait for the import of Amaranth.
"""

import sys
from typing import TYPE_CHECKING, Any

from .toolchain.exports import lazy_exports
from .toolchain.extras import name_missing_extra
from .toolchain.version import __version__

if TYPE_CHECKING:
    from .algorithms import Algorithm, Options
    from .algorithms import register_algorithm as register_algorithm
    from .algorithms.spreading import Collision, find_collisions, spread
    from .analysis.bounds import bound
    from .analysis.check import check
    from .analysis.cost import stream_time, time
    from .cli.connect import connect
    from .collective import Collective, Operator, Traffic, parse_collective, register_operator
    from .errors import (
        InputError,
        MissingTool,
        ScheduleError,
        TorusfabricError,
        WorkFailed,
    )
    from .fabric.fabric import Fabric
    from .fabric.images import image, repair
    from .fabric.spec import FabricSpec
    from .fpga.synthesis.synthesize import synthesize
    from .planning import Program, compile, import_schedule, plan, plan_forms
    from .planning.choice import Candidate, compare
    from .schedule import (
        Listed,
        Pattern,
        Rounds,
        Schedule,
        SumPattern,
        SumTable,
        Switching,
        Table,
        Transfers,
    )
    from .schedule.file import load, save
    from .schedule.foreign.export import export_schedule
    from .simulation.engines import Job
    from .simulation.simulate import simulate
    from .topology import (
        Arrowhead,
        CayleyGraph,
        Circulant,
        Complete,
        Cube,
        Faulty,
        Graph,
        Mesh,
        Topology,
        Torus,
        TwistedTorus,
        parse_topology,
        register_topology,
        with_rates,
    )
    from .verilog import emit

__all__ = ["Algorithm", "Arrowhead", "Candidate", "CayleyGraph", "Circulant", "Collective",
           "Collision", "Complete", "Cube", "Fabric", "FabricSpec", "Faulty", "Graph",
           "InputError", "Job", "Listed", "Mesh", "MissingTool", "Operator", "Options", "Pattern",
           "Program", "Rounds", "Schedule", "ScheduleError", "SumPattern", "SumTable", "Switching",
           "Table", "Topology", "TorusfabricError", "Torus", "Traffic", "Transfers",
           "TwistedTorus", "WorkFailed", "__version__", "bound", "check", "compare", "compile",
           "connect", "emit", "export_schedule", "find_collisions", "image", "import_schedule",
           "load", "parse_collective", "parse_topology", "plan", "plan_forms",
           "register_algorithm", "register_operator", "register_topology", "repair", "save",
           "simulate", "spread", "stream_time", "synthesize", "time",
           "with_rates"]  # fmt: skip

_exported = lazy_exports(__name__)


def __getattr__(name: str) -> Any:
    with name_missing_extra():
        return _exported(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_notebook_display() -> None:
    """Let a notebook show schedules, if this is one."""
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        from .draw.notebook import register_display

        register_display(shell)


_register_notebook_display()
