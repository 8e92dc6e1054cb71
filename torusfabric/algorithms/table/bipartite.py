"""Maximum bipartite matchings of ports to candidates, by augmenting paths (Kuhn)."""

from collections.abc import Iterable, Sequence

__all__ = ["maximum_matching"]


def maximum_matching(
    candidates: Sequence[Sequence[int]], must: Iterable[int] = ()
) -> dict[int, int]:
    """Return a maximum matching of ports to candidates.

    Parameters
    ----------
    candidates : list of list
        The candidates of each port, best first. Where not all ports can be matched, earlier ports
        have priority.
    must : iterable
        Candidates to match before all others.

    Returns
    -------
    dict
        The candidate of each matched port.

    Examples
    --------
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
