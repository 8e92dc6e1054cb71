"""From a selection to a checked schedule and a compiled program: the one such chain.

A `Selection` says what to plan, by names or by values; `plan_selection` plans it, `plan` does both
and checks, and `plan_any_root` plans for a root that each run chooses. `compile` makes the program
of a schedule. All rooms above come here: none of them looks for an algorithm or compiles by itself.
Names are imported when they are first used, so that planning does not wait for what compiles.
"""

from typing import TYPE_CHECKING

from ..toolchain.exports import exported

if TYPE_CHECKING:
    from ..program import Program, compile
    from .any_root import plan_any_root
    from .foreign import import_schedule
    from .forms import plan_forms, resolve_forms
    from .limits import announce, require_hardware, require_results
    from .plans import plan, plan_selection, resolve
    from .selection import FormChoice, PlanOptions, Selection, select

__all__ = ["announce", "FormChoice", "PlanOptions", "Program", "Selection", "compile",
           "import_schedule", "plan", "plan_any_root", "plan_forms", "plan_selection",
           "require_hardware", "require_results", "resolve", "resolve_forms", "select"]  # fmt: skip

__getattr__ = exported(__name__)
