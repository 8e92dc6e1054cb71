"""Proof that a topology is a Cayley graph of a finite abelian group, as its class claims.

Other packages may define classes of topologies, and planners rely on their claims. Each claim is
checked completely, without sampling:

- `coordinates` maps the nodes one to one onto the product of cyclic groups with orders `moduli`.
  This makes the nodes an abelian group.
- `add` and `subtract` agree with that group for all pairs of nodes.
- Ports lead to the sum of node and generator, and `opposite` ports lead back.
- All nodes are reached, and `distances` are those of a search.
- The entry of a schedule file and the name are read back as the same topology.
"""

import json
import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from ..errors import InputError
from . import registry
from .cayley import CayleyGraph
from .topology import IntArray, IntLike, hops_from
from .torus import Torus

__all__ = ["MOST_NODES_FOR_PAIRS", "validate_cayley_graph"]

#: The most nodes of a topology whose class may define `add` or `subtract`: all pairs are compared.
MOST_NODES_FOR_PAIRS = 4096

#: The most characters of a name in a message.
LONGEST_NAME = 80

#: Pairs of nodes compared in one numpy operation.
PAIRS_PER_CHUNK = 2**18

#: The most nodes, so that their numbers fit the 32 bits of tables; and the most arcs, whose check
#: takes some ten seconds.
MOST_NODES, MOST_ARCS = 2**31 - 1, 2**24

#: Topologies already proved, as pairs of class and entry of a schedule file.
_proved: set[tuple[type[CayleyGraph], str]] = set()

#: True while `_check_round_trips` reads a topology back. Validating the copy would never end.
_comparing: ContextVar[bool] = ContextVar("_comparing", default=False)


def validate_cayley_graph(
    topology: CayleyGraph, like: Callable[[], CayleyGraph] | None = None
) -> None:
    """Check that a topology is a Cayley graph, and that all members of its class agree with that.

    Why: planners rely on these members, and other packages may define classes. Each topology is
    checked only once.

    Parameters
    ----------
    like : function of () -> CayleyGraph, optional
        Function that makes the same topology from a class of this package. Needed if the class of
        `topology` is a subclass of such a class, because algorithms then treat the topology as one
        of the class of this package.

    Raises
    ------
    InputError
        If a member is wrong. The message names the first such member, its right value and its
        value.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> validate_cayley_graph(Torus(3, 4))
    """
    if _comparing.get():
        return
    key = type(topology), _entry_text(topology)
    if key in _proved:
        return
    _check_numbers(topology)
    _check_group(topology)
    _check_sums(topology)
    generators = _check_generators(topology)
    _check_links(topology, generators)
    if like is not None:
        _check_same_network(
            topology, _read_member(topology, "Class", "one that CayleyGraph knows", like)
        )
    _check_names(topology)
    _check_round_trips(topology)
    _proved.add(key)


def _raise_member_error(topology: CayleyGraph, what: str, must: str, found: object) -> NoReturn:
    """Raise an error about a member of a topology: `what` must be `must`, not `found`."""
    name = getattr(topology, "name", None) or type(topology).__name__
    text, name = " ".join(str(found).split()), str(name)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    raise InputError(f"{what} of topology {name} must be {must}, not {text[:200]}")


def _read_member(topology: CayleyGraph, what: str, must: str, read: Callable[[], Any]) -> Any:
    """Return the result of `read`, a function that reads a member of a topology.

    The class of the topology is of another package. Any exception therefore becomes an
    `InputError`, whose message says that `what` must be `must`.
    """
    try:
        return read()
    except Exception as error:
        _raise_member_error(topology, what, must, f"{type(error).__name__}: {error}")


def _read_table(
    topology: CayleyGraph, what: str, read: Callable[[], Any], shape: tuple[int, ...], below: int
) -> IntArray:
    """Return an array of a topology whose class is of another package, after checking it.

    `read` reads the array. It must have the given shape and integers from 0 to `below` - 1.
    `what` names it in the message.
    """
    must = f"integers of shape {shape} from 0 to {below - 1}"
    found = np.asarray(_read_member(topology, what, must, read))
    if found.shape != shape:
        _raise_member_error(topology, what, must, f"of shape {found.shape}")
    if not np.issubdtype(found.dtype, np.integer):
        _raise_member_error(topology, what, must, f"of type {found.dtype}")
    if found.size and not 0 <= found.min() <= found.max() < below:
        _raise_member_error(topology, what, must, f"from {found.min()} to {found.max()}")
    return found.astype(np.int64, copy=False)


def _entry_text(topology: CayleyGraph) -> str:
    """Return the entry of the topology in a schedule file, as JSON text."""
    must = f'a dictionary that JSON can write, of the kind "{topology.kind}"'

    entry = _read_member(topology, "Entry", must, topology.to_json)
    text = str(_read_member(topology, "Entry", must, lambda: json.dumps(entry, sort_keys=True)))
    if not isinstance(entry, dict) or entry.get("kind") != topology.kind:
        _raise_member_error(topology, "Entry", must, text)
    return text


def _check_numbers(topology: CayleyGraph) -> None:
    """Check the number of nodes, ports and arcs, and the names of ports."""
    for what, read, least in (
        ("Nodes", lambda: topology.nodes, 1),
        ("Ports", lambda: topology.ports, 0),
    ):
        must = f"an integer from {least} to {MOST_NODES}"
        number = _read_member(topology, what, must, read)
        if not isinstance(number, int) or isinstance(number, bool):
            _raise_member_error(topology, what, must, repr(number))
        if not least <= number <= MOST_NODES:
            _raise_member_error(topology, what, must, number)
    arcs = topology.nodes * topology.ports
    if arcs > MOST_ARCS:
        _raise_member_error(topology, "Arcs", f"at most {MOST_ARCS}", arcs)
    must = f"{topology.ports} different words"
    names = _read_member(topology, "Names of ports", must, lambda: tuple(topology.port_names))
    words = all(isinstance(name, str) and name and not name.split()[1:] for name in names)
    if not words or len(names) != topology.ports or len(set(names)) < len(names):
        _raise_member_error(topology, "Names of ports", must, names)
    dimensions = _read_member(topology, "Dimensions", "left out", lambda: topology.dimensions)
    if dimensions != 0 and not isinstance(topology, Torus):
        _raise_member_error(
            topology, "Dimensions", "left out, for only a torus is cut into groups", dimensions
        )


def _check_group(topology: CayleyGraph) -> None:
    """Check that coordinates number the nodes one to one, with 0 for node 0.

    Each coordinate must be below its modulus. The nodes are then the elements of a product of
    cyclic groups.
    """
    must = f"orders of cyclic groups whose product is the {topology.nodes} nodes"
    moduli = _read_member(topology, "Moduli", must, lambda: tuple(topology.moduli))
    whole = all(isinstance(n, int | np.integer) and n >= 1 for n in moduli)
    if not whole or math.prod(map(int, moduli)) != topology.nodes:
        _raise_member_error(topology, "Moduli", must, moduli)
    nodes, shape = np.arange(topology.nodes), (len(moduli), topology.nodes)
    coordinates = _read_table(
        topology, "Coordinates", lambda: topology.coordinates(nodes), shape, max(moduli, default=1)
    )
    for axis, (values, modulus) in enumerate(zip(coordinates, moduli, strict=True)):
        if values.max() >= modulus:
            what = f"Coordinates {axis}"
            _raise_member_error(topology, what, f"below their modulus {modulus}", values.max())
    numbers = np.zeros(topology.nodes, np.int64)
    for values, modulus in zip(coordinates, moduli, strict=True):
        numbers = numbers * int(modulus) + values
    order = np.argsort(numbers, kind="stable")
    same = np.flatnonzero(numbers[order[1:]] == numbers[order[:-1]])
    if same.size:
        pair = order[same[0]], order[same[0] + 1]
        _raise_member_error(topology, "Coordinates", "different for all nodes",
                f"the same for nodes {pair[0]} and {pair[1]}")  # fmt: skip
    if coordinates[:, 0].any():
        _raise_member_error(topology, "Coordinates of node 0", "all 0", coordinates[:, 0].tolist())


def _check_generators(topology: CayleyGraph) -> IntArray:
    """Check that opposite ports lead back, and return the neighbour of node 0 at each port."""
    ports = topology.ports
    must = (ports,), topology.nodes
    generators = _read_table(topology, "Generators", lambda: topology.generators, *must)
    opposite = _read_table(topology, "Opposite ports", lambda: topology.opposite, (ports,), ports)
    away = topology.sum_of_coordinates(generators, generators[opposite])
    back = opposite[opposite] == np.arange(ports)
    bad = np.flatnonzero((away != 0) | ~back)
    if bad.size:
        port = topology.port_names[bad[0]]
        _raise_member_error(topology, f"Opposite of port {port}",
                f"the port that leads back, by coordinates modulo {tuple(topology.moduli)}",
                topology.port_names[opposite[bad[0]]])  # fmt: skip
    return generators


def _check_sums(topology: CayleyGraph) -> None:
    """Check that the class's own `add` and `subtract` add and subtract coordinates, for all nodes.

    All pairs of nodes are compared. A class that inherits both methods passes.
    """
    nodes = topology.nodes
    step = max(1, PAIRS_PER_CHUNK // nodes)
    for name, ours, sign in (("add", CayleyGraph.add, 1), ("subtract", CayleyGraph.subtract, -1)):
        own = getattr(topology, name)
        if getattr(own, "__func__", None) is ours:
            continue
        if nodes > MOST_NODES_FOR_PAIRS:
            _raise_member_error(
                topology,
                name.capitalize(),
                "left out, for it follows from coordinates and moduli, above "
                f"{MOST_NODES_FOR_PAIRS} "
                "nodes",
                f"defined for {nodes}",
            )
        for first in range(0, nodes, step):
            rows = np.arange(first, min(first + step, nodes))[:, None]
            _compare_sums(topology, own, sign, rows, np.arange(nodes)[None])
        _compare_sums(topology, own, sign, 0, 0)


def _compare_sums(
    topology: CayleyGraph, own: Callable[[IntLike, IntLike], Any], sign: int, a: IntLike, b: IntLike
) -> None:
    """Check that a method `own` of the class adds nodes `a` and `b` as their coordinates add.

    For `sign` -1, `own` must subtract `b` from `a`.
    """
    what = "Add" if sign > 0 else "Subtract"
    right = topology.sum_of_coordinates(a, b, sign=sign)
    found = _read_table(topology, what, lambda: own(a, b), right.shape, topology.nodes)
    wrong = np.argwhere(found != right)
    if len(wrong):
        at = tuple(wrong[0])
        first, second = (int(np.broadcast_to(x, right.shape)[at]) for x in (a, b))
        must = f"{right[at]}, which is that of their coordinates modulo {tuple(topology.moduli)}"
        _raise_member_error(topology, f"{what} of nodes {first} and {second}", must, found[at])


def _check_links(topology: CayleyGraph, generators: IntArray) -> None:
    """Check the links and the distances of a topology.

    `generators` has the generator of each port, which is a node. Each port must lead to the node
    plus the generator of the port, all nodes must be reached, and `distances` must be those of a
    search.
    """
    nodes, ports = topology.nodes, topology.ports
    neighbours = _read_table(
        topology, "Neighbours", lambda: topology.neighbours, (nodes, ports), nodes
    )
    for port, generator in enumerate(generators):
        right = topology.sum_of_coordinates(np.arange(nodes), generator)
        wrong = np.flatnonzero(neighbours[:, port] != right)
        if wrong.size:
            _raise_member_error(
                topology,
                f"Neighbour of node {wrong[0]} at port {topology.port_names[port]}",
                f"{right[wrong[0]]}, which is the node plus the generator of the port",
                neighbours[wrong[0], port],
            )
    hops = hops_from(neighbours)
    if hops.min() < 0:
        _raise_member_error(topology, "Nodes", f"{nodes}, all linked to node 0 by way of others",
                f"{int((hops >= 0).sum())} of them")  # fmt: skip
    distances = _read_table(topology, "Distances", lambda: topology.distances, (nodes,), nodes)
    wrong = np.flatnonzero(distances != hops)
    if wrong.size:
        _raise_member_error(
            topology,
            f"Distance of node {wrong[0]} from node 0",
            str(hops[wrong[0]]),
            distances[wrong[0]],
        )
    diameter = _read_member(topology, "Diameter", "an integer", lambda: topology.diameter)
    if diameter != hops.max():
        _raise_member_error(topology, "Diameter", str(hops.max()), diameter)


def _check_same_network(topology: CayleyGraph, plain: CayleyGraph) -> None:
    """Check that `topology`, of a subclass, is the same network as `plain`, of the base class.

    Only the names of nodes may differ. An `InputError` names the first other difference.
    """
    nodes = np.arange(plain.nodes)
    tables: tuple[tuple[str, Callable[[CayleyGraph], Any]], ...] = (
        ("Names of ports", lambda network: network.port_names),
        ("Opposite ports", lambda network: network.opposite),
        ("Moduli", lambda network: network.moduli),
        ("Neighbours", lambda network: network.neighbours),
        ("Coordinates", lambda network: network.coordinates(nodes)),
    )
    for what, read in tables:
        if not np.array_equal(read(topology), read(plain)):
            family = type(plain).__name__
            _raise_member_error(
                topology,
                what,
                f"those of {plain}, for its class is a subclass of {family}",
                "others: make it a subclass of CayleyGraph",
            )


def _check_names(topology: CayleyGraph) -> None:
    """Check the texts that users read.

    They are the name and the kind of the topology, the forms in which it is written, and the names
    of two nodes.
    """
    last = topology.nodes - 1
    for what, read in (
        ("Name", lambda: topology.name),
        ("Kind", lambda: topology.kind),
        ("Notation", lambda: topology.notation),
        ("Form of an entry", lambda: topology.entry),
        ("Name of the first node", lambda: topology.node_name(0)),
        ("Name of the last node", lambda: topology.node_name(last)),
    ):
        found = _read_member(topology, what, "a line of text", read)
        if not isinstance(found, str) or not found.strip() or not found.isprintable():
            _raise_member_error(topology, what, "a line of text", repr(found))


def _check_round_trips(topology: CayleyGraph) -> None:
    """Check that the entry and the name of the topology are read back as the same topology."""
    entry = json.loads(_entry_text(topology))
    token = _comparing.set(True)
    try:
        must = f"one that from_json reads as {topology.name} again"
        found = _read_member(topology, "Entry", must, lambda: type(topology).from_json(entry))
        if found != topology:
            _raise_member_error(topology, "Entry", must, f"{entry}, read as {found}")
        if registry.FAMILIES.get(topology.kind) is type(topology):
            must = f"one that parse reads as {topology.name} again"
            found = _read_member(
                topology, "Name", must, lambda: type(topology).parse(topology.name)
            )
            if found != topology:
                _raise_member_error(topology, "Name", must, f"read as {found}")
    finally:
        _comparing.reset(token)
