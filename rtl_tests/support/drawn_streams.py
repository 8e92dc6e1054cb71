"""Fabrics with streams, and how their ports rest, as hypothesis draws them."""

from hypothesis import strategies as st

__all__ = ["drawn_streams"]

TOPOLOGIES = ["2", "3", "2x2", "2x3", "5", "2x2x2", "arrowhead:1"]

COLLECTIVES = ["allgather", "alltoall", "broadcast", "scatter", "gather", "reduce",
               "reduce-scatter", "allreduce"]  # fmt: skip

#: How likely it is that a port rests in a cycle.
STALLS = st.sampled_from([0, 0.2, 0.7])


def drawn_streams(*, modes, flits, width):
    """What `hypothesis.given` is given, up to so many modes, flits and bits."""
    return {
        "topology": st.sampled_from(TOPOLOGIES),
        "collectives": st.lists(st.sampled_from(COLLECTIVES), min_size=1, max_size=modes),
        "flits": st.integers(1, flits),
        "width": st.integers(1, width),
        "root": st.sampled_from([None, "any"]),
        "stall": st.tuples(STALLS, STALLS),
        "seed": st.integers(0, 99),
    }
