"""Programs: the actions of every router and memory in order, compiled from schedules.

The modules, in the order of reading:

- `fields`, `mode`, `program`: a program as data, from a control point to all modes.
- `timing`, `execute`, `follow`, `trace`: cycles of a run, its execution on data, paths of words.
- `address_map`, `host_words`: addresses of blocks, and of the words of the host.
- `compile`, `moves`: the way from schedules to a program. A planner for each class of schedule
  makes moves:

  - `block_moves`, `sum_moves` for patterns, `tree_moves` for sums up trees;
  - `table_planner`, `sum_planner` for tables, with `table_timing` and `node_planner`;
  - `rounds` for all others, with `round_follower`, `sum_follower`, `passing`, `send_order` and
    `any_root`.

- `lift`, `merge`, `serving`, `operator_demands`: groups, several forms, the choice of forms, and
  operators that need time or a fixed order.
- `counts`: estimates of the hardware.
"""

from .address_map import AddressMap
from .compile import compile
from .fields import (
    IDENTITY_MEMORY,
    IDLE,
    Action,
    Field,
    Loop,
    Memory,
    Order,
    Point,
    Sources,
)
from .mode import CycleCost, Form, Mode
from .program import Program
from .timing import CyclePiece, Timing

__all__ = ["IDLE", "IDENTITY_MEMORY", "Action", "Field", "AddressMap", "CycleCost", "CyclePiece",
           "Loop", "Form", "Memory", "Mode", "Order", "Point", "Program", "Sources", "Timing",
           "compile"]  # fmt: skip
