"""Collectives whose schedule is one table for all nodes: schedules unchanged by translation."""
