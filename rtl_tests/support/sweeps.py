"""A sweep, one of its steps, and its rows."""

import json

#: A sweep of many short steps.
MANY = """
topologies = ["3x3", "3x4", "4x4", "4x5"]
collectives = ["allgather", "broadcast"]
algorithms = ["all"]
chunks = [1, 2, 4]
"""


def plan_step(topology="4x4", **others):
    """Return a step that plans an all-gather."""
    return {"step": "plan", "topology": topology, "collective": "allgather", **others}


def lines_of(path):
    """Return the rows of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()]
