"""A sweep, a step of its work, and its rows."""

import json

#: A sweep of many short things to do.
MANY = """
topologies = ["3x3", "3x4", "4x4", "4x5"]
collectives = ["allgather", "broadcast"]
algorithms = ["all"]
chunks = [1, 2, 4]
"""


def plan_step(topology="4x4", **others):
    """A step that plans an all-gather."""
    return {"step": "plan", "topology": topology, "collective": "allgather", **others}


def lines_of(path):
    """The rows of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()]
