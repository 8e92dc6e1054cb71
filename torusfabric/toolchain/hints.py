"""What a user probably meant by a name that there is none of."""

import difflib
from collections.abc import Iterable, Mapping

from ..errors import InputError
from .values import shown

__all__ = ["hint", "no_such"]

#: Names are meant by others from this share of equal letters on.
CLOSE = 0.6


def hint(name: object, known: Iterable[str] | Mapping[str, str]) -> str:
    """The end of a message that names what is nearest to a name, or nothing.

    Parameters
    ----------
    name : object
        What the user wrote.
    known : iterable of str, or dict of str to str
        The names there are; or the ways to write one, and the name that each stands for.

    Examples
    --------
    >>> hint("Hamilton", ["hamiltonian", "matching"])
    ' (did you mean hamiltonian?)'
    >>> hint("gosip", {"allgather": "allgather", "gossip": "allgather"})
    ' (did you mean allgather?)'
    >>> hint("ad", ["add", "and", "or"])
    ' (did you mean add or and?)'
    >>> hint("xyz", ["hamiltonian", "matching"])
    ''
    """
    names = dict(known) if isinstance(known, Mapping) else {entry: entry for entry in known}
    matcher = difflib.SequenceMatcher(b=str(name).lower())
    closeness: dict[str, float] = {}
    for entry, meant in names.items():
        matcher.set_seq1(entry.lower())
        closeness[meant] = max(matcher.ratio(), closeness.get(meant, 0))
    best = max(closeness.values(), default=0)
    nearest = [meant for meant, ratio in closeness.items() if ratio == best]
    return f" (did you mean {' or '.join(nearest)}?)" if best >= CLOSE else ""


def no_such(
    what: str,
    name: object,
    known: Iterable[str],
    *,
    ways: Mapping[str, str] | None = None,
    more: str = "",
) -> InputError:
    """The error of a name that there is none of.

    Parameters
    ----------
    what : str
        What is named, to begin the message with.
    name : object
        What the user wrote.
    known : iterable of str
        The names there are.
    ways : dict of str to str, optional
        Other ways to write them, and the name that each stands for.
    more : str
        What would do besides.

    Examples
    --------
    >>> print(no_such("Duplex", "hall", ["full", "half"]))
    Duplex must be full or half, not 'hall' (did you mean half?)
    """
    names = list(known)
    which = " or ".join(names) if len(names) < 3 else f"one of {', '.join(names)}"
    meant = hint(name, {entry: entry for entry in names} | dict(ways or {}))
    return InputError(f"{what} must be {which}{more}, not {shown(name)}{meant}")
