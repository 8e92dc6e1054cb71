"""Maximum bipartite matchings, by augmenting paths (Kuhn).

In a step of a schedule, each port of a node sends at most one of its *candidates*, such as blocks,
and no candidate is sent twice. A matching decides which port sends which candidate.
"""

from collections.abc import Iterable, Sequence

__all__ = ["maximum_matching"]


def maximum_matching(
    candidates: Sequence[Sequence[int]], must: Iterable[int] = ()
) -> dict[int, int]:
    """Return a matching of as many ports as possible, each with a candidate of its own.

    Parameters
    ----------
    candidates : list of list
        The candidates of each port, such as blocks that it can send, best first. Where not all
        ports can be matched, earlier ports have priority.
    must : iterable
        Candidates to match before all others.

    Returns
    -------
    dict
        The candidate of each matched port.

    Examples
    --------
    Port 0 gets candidate 6, so that candidate 5 is free for port 1.

    >>> sorted(maximum_matching([[5, 6], [5]]).items())
    [(0, 6), (1, 5)]
    """
    owner: dict[int, int] = {}

    def augment(port: int, first: int, seen: set[int]) -> bool:
        for item in candidates[port]:
            if item not in seen:
                seen.add(item)
                holder = owner.get(item)
                if holder is None or holder > first or augment(holder, first, seen):
                    owner[item] = port
                    return True
        return False

    for item in must:
        _insert_item(item, candidates, owner, set())
    for port in range(len(candidates)):
        if port not in owner.values():
            augment(port, port, set())
    return {port: item for item, port in owner.items()}


def _insert_item(
    item: int, candidates: Sequence[Sequence[int]], owner: dict[int, int], seen: set[int]
) -> bool:
    """Match a candidate, `item`, to a port; other candidates may change to other ports for that.

    ``candidates[port]`` lists the candidates of a port, and `owner` has the port of each candidate
    matched so far. Ports in `seen` were tried in vain. Return True if `item` could be matched.
    """
    holds = {port: other for other, port in owner.items()}
    for port, options in enumerate(candidates):
        if port not in seen and item in options:
            seen.add(port)
            if port not in holds or _insert_item(holds[port], candidates, owner, seen):
                owner[item] = port
                return True
    return False
