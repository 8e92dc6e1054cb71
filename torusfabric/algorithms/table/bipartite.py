"""Maximum matchings of ports to what they may take, by augmenting paths (Kuhn)."""

from collections.abc import Iterable, Sequence

__all__ = ["match"]


def match(candidates: Sequence[Sequence[int]], must: Iterable[int] = ()) -> dict[int, int]:
    """Match ports to candidates: a maximum matching, by augmenting paths (Kuhn).

    Parameters
    ----------
    candidates : list of list
        For each port what it may take, best first. Where not all ports can be matched, the first
        ones are.
    must : iterable
        Candidates to match before all others.

    Returns
    -------
    dict
        What each matched port takes.
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
        _insert(item, candidates, owner, set())
    for port in range(len(candidates)):
        if port not in owner.values():
            augment(port, port, set())
    return {port: item for item, port in owner.items()}


def _insert(
    item: int, candidates: Sequence[Sequence[int]], owner: dict[int, int], seen: set[int]
) -> bool:
    """Find a port for an item, moving others: an augmenting path from its side."""
    holds = {port: other for other, port in owner.items()}
    for port, options in enumerate(candidates):
        if port not in seen and item in options:
            seen.add(port)
            if port not in holds or _insert(holds[port], candidates, owner, seen):
                owner[item] = port
                return True
    return False
