"""Schedules from other systems: maps of ranks to nodes, and the rounds and links of messages.

A *rank* is a participant of such a schedule, for example a GPU.
"""
