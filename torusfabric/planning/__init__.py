"""Planning: the only way from names, such as ``8x8 allgather``, to a schedule and a program.

1. `make_selection` reads the names and returns a `Selection`: topology, collective, options, and
   an algorithm if the user names one.
2. `resolve` chooses the open parts of a selection: the algorithm and the latency of sums (the least
   number of steps between the arrival of a word at a node and the departure of the sum with this
   word). `resolve_forms` chooses several algorithms, each for a range of message lengths.
3. `plan_selection` returns the schedule. `plan_any_root` returns a schedule for a root that each
   run chooses.
4. `compile` returns the program of a schedule.

`plan` does steps 1 to 3 and checks the schedule. The packages above plan and compile with these
functions only. Each name is imported at its first use. Why: a command that only plans need not wait
for the import of the compiler.
"""

from typing import TYPE_CHECKING

from ..toolchain.exports import lazy_exports

if TYPE_CHECKING:
    from ..program import Program, compile
    from .any_root import plan_any_root
    from .foreign import import_schedule
    from .forms import plan_forms, resolve_forms
    from .limits import log_duration, require_hardware_memory, require_result_memory
    from .plans import plan, plan_selection, resolve
    from .selection import FormChoice, PlanOptions, Selection, make_selection

__all__ = ["log_duration", "FormChoice", "PlanOptions", "Program", "Selection", "compile",
           "import_schedule", "plan", "plan_any_root", "plan_forms", "plan_selection",
           "require_hardware_memory", "require_result_memory", "resolve", "resolve_forms",
           "make_selection"]  # fmt: skip

__getattr__ = lazy_exports(__name__)
