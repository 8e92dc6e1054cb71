"""The registry of topology classes that users can name.

Another package adds a class by `register_topology`, or by an entry point of the group
``torusfabric.topologies`` that names a subclass of `Topology`.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from ..errors import InputError, TorusfabricError
from ..toolchain.exports import load_entry_points
from ..toolchain.public import public
from ..toolchain.values import message_text, suggest_name
from .topology import Topology

__all__ = ["ENTRY_POINT_GROUP", "parse_topology", "register_topology", "topology_from_json"]

#: The group of entry points by which other packages offer topologies.
ENTRY_POINT_GROUP = "torusfabric.topologies"

Family = TypeVar("Family", bound=type[Topology])

#: The registered classes by their kind. `parse_topology` tries them in this order.
FAMILIES: dict[str, type[Topology]] = {}


@public
def register_topology(family: Family) -> Family:
    """Register a class of topologies, so that users can name them in commands and schedule files.

    Parameters
    ----------
    family : subclass of Topology
        The class, with all abstract members defined.

    Returns
    -------
    type
        The same class, so that the function can be used as a decorator.

    Raises
    ------
    InputError
        If the class is no subclass of `Topology`, if it lacks a member, or if another class has the
        same kind.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.register_topology(tf.Torus)
    <class 'torusfabric.topology.torus.Torus'>
    """
    if not (isinstance(family, type) and issubclass(family, Topology)):
        raise InputError(f"Class of topologies must be a subclass of Topology, not {family!r}")
    lacking = sorted(getattr(family, "__abstractmethods__", ()))
    words = ("kind", "notation", "entry")
    lacking += [name for name in words if not isinstance(getattr(family, name, None), str)]
    if lacking:
        raise InputError(
            f"Class of topologies {family.__name__} must define all that Topology leaves open, "
            f"not leave out {', '.join(lacking)}"
        )
    known = FAMILIES.setdefault(family.kind, family)
    if known is not family:
        raise InputError(f"Kind of a topology must be a new one, not {family.kind!r}")
    return family


@cache
def _load_entry_points() -> None:
    """Register the classes that entry points name, once."""
    load_entry_points(ENTRY_POINT_GROUP, "a class of topologies", register_topology)


def _topology_classes() -> Iterator[type[Topology]]:
    """Yield all classes. Entry points are searched only if no registered class fits."""
    yield from (known := tuple(FAMILIES.values()))
    _load_entry_points()
    yield from (family for family in FAMILIES.values() if family not in known)


@public
def parse_topology(text: Topology | str) -> Topology:
    """Return the topology that a user names.

    Parameters
    ----------
    text : Topology or str
        ``8x8``, ``7x7x7``, a single number for a ring, ``8x4~4`` or ``4x4x8~2:0,1`` for a twisted
        torus, ``arrowhead:3``, ``circulant:16:1,4``, ``complete:6``, ``cube:4``, or any other form
        that a registered class parses. A topology is returned unchanged.

    Raises
    ------
    InputError
        If the text names no topology.

    Examples
    --------
    >>> parse_topology("7x7x7").nodes
    343
    >>> parse_topology("arrowhead:2").port_names
    ('N', 'SW', 'SE', 'S', 'NE', 'NW')
    """
    if isinstance(text, Topology):
        return text
    for family in _topology_classes() if isinstance(text, str) else ():
        topology = _read_with_class(family, family.parse, text)
        if topology is not None:
            return topology
    *first, last = (family.notation for family in FAMILIES.values())
    forms = f"{', '.join(first)} or {last}"
    raise InputError(
        f"Topology must be {forms}, not {message_text(text)}{_suggest_form(str(text))}"
    )


def _read_with_class(
    family: type[Topology], read: Callable[[Any], Topology | None], given: object
) -> Topology | None:
    """Return the topology that the class `family` makes of `given`, text or a schedule-file entry.

    `read` is the method of the class that does this. Any error of it becomes an `InputError`.
    """
    try:
        return read(given)
    except TorusfabricError:
        raise
    except Exception as error:
        form = family.notation if isinstance(given, str) else family.entry
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"Topology must be {form}, not {message_text(given)} ({reason})"
        ) from error


def _suggest_form(text: str) -> str:
    """Return the end of the error message for text that names no topology: a form that may fit."""
    if re.fullmatch(r"-?[0-9]+(\s*(x|X|by|,|\*|×)\s*-?[0-9]+)+", text):
        sides = "x".join(re.findall(r"[0-9]+", text))
        return f" (did you mean {sides}?)"
    kind = re.sub(r"[^a-z].*", "", text.lower())
    if kind in FAMILIES:
        return ""  # the kind is right, and the message already shows the form of its arguments
    forms = {name: family.notation for name, family in FAMILIES.items() if name != "torus"}
    return suggest_name(kind, forms)


def topology_from_json(entry: object) -> Topology:
    """Return the topology of the ``topology`` entry of a schedule file.

    Parameters
    ----------
    entry : object
        The JSON value of the entry.

    Raises
    ------
    InputError
        If the entry names no topology.

    Examples
    --------
    >>> topology_from_json({"kind": "torus", "sides": [8, 8]})
    <Torus 8x8>
    """
    if isinstance(entry, dict):
        kind = str(entry.get("kind"))
        family = next((family for family in _topology_classes() if family.kind == kind), None)
        bare = {key: value for key, value in entry.items() if key != "link_latency"}
        topology = _read_with_class(family, family.from_json, bare) if family else None
        if family is not None and topology is not None:
            _check_keys(family, topology, bare)
            if "link_latency" in entry:
                return topology.on_links(entry["link_latency"])
            return topology
    forms = " or ".join(family.entry for family in FAMILIES.values())
    raise InputError(f"Topology must be {forms}, not {message_text(entry)}")


def _check_keys(family: type[Topology], topology: Topology, entry: dict[str, Any]) -> None:
    """Refuse `entry`, a topology in a schedule file, if it has a key that its class does not read.

    `family` is the class, and `topology` the topology that it made of the entry.
    """
    known = {*re.findall(r'"(\w+)":', family.entry), *topology.to_json()}
    for key in entry:
        if key not in known:
            raise InputError(f"Topology must be {family.entry}, without a key {message_text(key)}")
