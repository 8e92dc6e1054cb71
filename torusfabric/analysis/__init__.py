"""Analysis of schedules: proof of correctness, lower bounds on rounds and time, cost models, and
use of links.
"""
