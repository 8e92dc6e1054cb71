"""Hardware of a fabric on several boards: nodes, links, and the control of common runs."""

from .block import Block
from .link_plan import LinkPlan
from .system import BoardSystem, plan_links

__all__ = ["Block", "BoardSystem", "LinkPlan", "plan_links"]
