"""Fabrics on several boards: links between them, and what starts and ends runs on all of them."""

from .link_plan import LinkPlan
from .system import BoardSystem, plan_links

__all__ = ["BoardSystem", "LinkPlan", "plan_links"]
