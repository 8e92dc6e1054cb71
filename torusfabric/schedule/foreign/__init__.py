"""Schedules in file formats of other systems: reading (MSCCL XML) and writing (MSCCL XML, CSV).

`msccl` parses a file to plain values. `dataflow` executes its steps to find the data that each
message carries, and checks the result. `torusfabric.algorithms.foreign` then chooses rounds and
links for the messages. `export` writes schedules.
"""
