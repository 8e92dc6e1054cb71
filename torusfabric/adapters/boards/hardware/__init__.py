"""Fabrics on several boards: links between them, and what starts and ends runs on all of them."""

from .block import Block
from .link_plan import LinkPlan
from .system import BoardSystem, plan_links

__all__ = ["Block", "BoardSystem", "LinkPlan", "plan_links"]
