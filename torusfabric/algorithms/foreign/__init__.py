"""Schedules from other systems: maps of ranks to nodes, and the rounds and links of messages."""
