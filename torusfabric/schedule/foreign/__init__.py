"""Schedules in the formats of other systems: read as plain values, and written.

What such a file means, and whether it is right, is the work of `dataflow`; when and along which
links its messages then move is found in `torusfabric.algorithms.foreign`.
"""
