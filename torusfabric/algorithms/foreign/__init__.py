"""Schedules from elsewhere: which node each rank is, and when messages go along which links."""

from .list_schedule import list_schedule
from .placement import PLACEMENTS, SEARCH_SECONDS, place_ranks

__all__ = ["PLACEMENTS", "SEARCH_SECONDS", "list_schedule", "place_ranks"]
