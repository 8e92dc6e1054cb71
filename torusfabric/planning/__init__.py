"""From a selection to a checked schedule and a compiled program: the one such chain.

A `Selection` says what to plan, by names or by values; `plan_selection` plans it, `plan` does both
and checks, and `plan_any_root` plans for a root that each run chooses. `compile` makes the program
of a schedule. All rooms above come here: none of them looks for an algorithm or compiles by itself.
"""

from ..program import Program, compile
from .any_root import plan_any_root
from .foreign import import_schedule
from .limits import announce, require_hardware, require_jobs, require_placements
from .plans import plan, plan_selection, resolve
from .selection import PlanOptions, Selection, select

__all__ = [
    "announce",
    "PlanOptions",
    "Program",
    "Selection",
    "compile",
    "import_schedule",
    "plan",
    "plan_any_root",
    "plan_selection",
    "require_hardware",
    "require_jobs",
    "require_placements",
    "resolve",
    "select",
]
