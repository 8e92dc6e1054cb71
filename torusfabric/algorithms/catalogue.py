"""The catalogue of algorithms, in which planners and commands look for an algorithm.

To add an algorithm to this package, write its module and enter it in `BUILT_IN`, before the
algorithms to which it is preferred where both apply. An algorithm of another package enters by
`register_algorithm`, or by an entry point of the group ``torusfabric.algorithms`` that names an
`Algorithm`.
"""

import copyreg
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..collective import Collective
from ..errors import InputError
from ..toolchain.exports import load_entry_points
from ..toolchain.notices import LOGGER
from ..toolchain.public import public_class, require_fields
from ..toolchain.values import message_text, unknown_name_error
from ..topology import Topology
from .algorithm import Algorithm, Options, option_flag, requested_value
from .arrowhead.spanning_tree import SPANNING_TREE
from .arrowhead.wormhole_forest import WORMHOLE_FOREST
from .circuit.diagonal.plan import DIAGONAL
from .circuit.lee_code import LEE_CODE
from .circuit.max_flow import MAX_FLOW
from .network.plan import ANY_NETWORK
from .oblivious.farthest_first import FARTHEST_FIRST
from .oblivious.hamiltonian.plan import HAMILTONIAN
from .oblivious.one_packet.plan import ONE_PACKET
from .oblivious.redistribute import REDISTRIBUTE
from .table.bufferless import BUFFERLESS
from .table.matching.plan import MATCHING
from .table.necklace.plan import NECKLACE
from .table.ring_exchange import RING_EXCHANGE
from .traffic.plan import ANY_TRAFFIC

__all__ = ["BUILT_IN", "CATALOGUE", "ENTRY_POINT_GROUP", "Catalogue", "choose_algorithm",
           "find_algorithm", "register_algorithm"]  # fmt: skip

#: The algorithms of this package, in order of preference.
BUILT_IN: tuple[Algorithm, ...] = (
    SPANNING_TREE,
    LEE_CODE,
    HAMILTONIAN,
    BUFFERLESS,
    ONE_PACKET,
    FARTHEST_FIRST,
    MATCHING,
    WORMHOLE_FOREST,
    MAX_FLOW,
    DIAGONAL,
    NECKLACE,
    REDISTRIBUTE,
    RING_EXCHANGE,
    ANY_NETWORK,
    ANY_TRAFFIC,
)

#: The group of entry points by which other packages offer algorithms.
ENTRY_POINT_GROUP = "torusfabric.algorithms"


@public_class
class Catalogue:
    """Algorithms in order of preference, each with a name of its own.

    Parameters
    ----------
    group : str, optional
        A group of entry points, by which other packages name algorithms. Their algorithms are
        registered late: when an iteration has yielded all algorithms known so far, or when the
        length is asked for. Why: the import of other packages takes time, and most searches end
        before.
    """

    def __init__(self, algorithms: Iterable[Algorithm] = (), *, group: str | None = None) -> None:
        self._algorithms = list(algorithms)
        self._unread_group = group

    def _all_algorithms(self) -> list[Algorithm]:
        """Return all algorithms, those of entry points included."""
        group, self._unread_group = self._unread_group, None
        if group:
            load_entry_points(group, "an algorithm", self.register, broken=LOGGER.warning)
        return self._algorithms

    def __len__(self) -> int:
        return len(self._all_algorithms())

    def __iter__(self) -> Iterator[Algorithm]:
        yield from (known := tuple(self._algorithms))
        if self._unread_group:  # rarely needed: most searches end before
            yield from [algorithm for algorithm in self._all_algorithms() if algorithm not in known]

    def register(self, algorithm: Algorithm, *, before: str | None = None) -> Algorithm:
        """Add an algorithm to the catalogue, and return it.

        Parameters
        ----------
        before : str, optional
            The name of the algorithm before which the new one is placed. By default the new
            algorithm comes last, so that `choose_algorithm` returns it only where no other one
            fits.

        Raises
        ------
        InputError
            If the argument is no `Algorithm`, its name is taken, or no algorithm has the name
            ``before``.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from torusfabric.algorithms import Catalogue, find_algorithm
        >>> catalogue = Catalogue([find_algorithm("hamiltonian"), find_algorithm("matching")])
        >>> mine = replace(find_algorithm("matching"), name="mine", summary="another search")
        >>> catalogue.register(mine, before="matching").name
        'mine'
        >>> [algorithm.name for algorithm in catalogue]
        ['hamiltonian', 'mine', 'matching']
        """
        if not isinstance(algorithm, Algorithm):
            raise InputError(f"Algorithm must be an Algorithm, not {message_text(algorithm)}")
        require_fields(algorithm)
        if any(other.name == algorithm.name for other in self):
            raise InputError(f"Algorithm must have a name of its own, not {algorithm.name!r}")
        place = len(self) if before is None else self._all_algorithms().index(self.find(before))
        self._algorithms.insert(place, algorithm)
        return algorithm

    def find(self, name: str) -> Algorithm:
        """Return the algorithm with a name.

        Parameters
        ----------
        name : str
            Name by which users choose the algorithm.

        Raises
        ------
        InputError
            If there is none.

        Examples
        --------
        >>> from torusfabric.algorithms import find_algorithm
        >>> find_algorithm("lee-code").source
        'Delmas and Perennes 1996, sections 5 and 6; Peters and Syska 1996'
        """
        for algorithm in self if isinstance(name, str) else ():
            if algorithm.name == name:
                return algorithm
        raise unknown_name_error("Algorithm", name, [algorithm.name for algorithm in self])

    def by_preference(self, collective: Collective) -> Iterator[Algorithm]:
        """Yield the algorithms that plan a collective, in order of preference for that collective.

        An algorithm comes last if the collective is in its field `last_for`.
        """
        last = []
        for entry in self:
            if collective.kind in entry.last_for:
                last.append(entry)
            elif collective.kind in entry.collectives:
                yield entry
        yield from last

    def choose(
        self, topology: Topology, collective: Collective, options: Options | None = None
    ) -> Algorithm:
        """Return the first algorithm of the catalogue that can plan a selection.

        The seed does not influence the choice.

        Parameters
        ----------
        options : Options, optional
            The options of the selection; by default all are left open.

        Raises
        ------
        InputError
            If there is none; the message names the need of each algorithm for the collective. Also
            if a seed is given but that algorithm does not search.

        Examples
        --------
        >>> import torusfabric as tf
        >>> from torusfabric.algorithms import choose_algorithm
        >>> choose_algorithm(tf.parse_topology("5x5"), tf.parse_collective("alltoall")).name
        'matching'
        """
        options = options or Options()
        seeded, options = options, replace(options, seed=Options.seed)
        for algorithm in self.by_preference(collective):
            if algorithm.why_not(topology, collective, options) is None:
                if algorithm.why_not(topology, collective, seeded) is None:
                    return algorithm
                others = [
                    entry.name
                    for entry in self.by_preference(collective)
                    if entry.why_not(topology, collective, seeded) is None
                ]
                which = f", or choose --algorithm {' or '.join(others)}" if others else ""
                raise InputError(
                    f"Seed {seeded.seed} has no effect, because {algorithm.name}, the best for "
                    f"{topology} {collective.name}, searches nothing; leave it out{which}"
                )
        able = [*self.by_preference(collective)]
        reasons, without = [], defaultdict(list)
        for algorithm in able:
            if unknown := algorithm.unknown(options):
                without[unknown[0]].append(algorithm.name)
                continue
            reason = str(algorithm.why_not(topology, collective, options))
            given = requested_value(reason, options)
            reasons.append(f"{algorithm.name} needs {reason}" + (f", not {given}" if given else ""))
        for option, names in without.items():
            reasons.append(f"no {option_flag(option)} is known to {', '.join(names)}")
        for name in options.given():
            knowing = [entry for entry in self if name in entry.options]
            if not any(entry in able for entry in knowing):
                others = [f"{e.name} ({', '.join(e.collectives)})" for e in knowing]
                reasons.append(f"{option_flag(name)} is for {', '.join(others)}")
        detail = "; ".join(reasons) or "no algorithm plans this collective yet"
        raise InputError(f"No algorithm fits {topology} {collective.name}: {detail}")


#: The catalogue of all algorithms: those of this package, then the registered ones.
CATALOGUE = Catalogue(BUILT_IN, group=ENTRY_POINT_GROUP)

register_algorithm, find_algorithm, choose_algorithm = (
    CATALOGUE.register,
    CATALOGUE.find,
    CATALOGUE.choose,
)


def _unpickle_algorithm(name: str) -> Algorithm:
    """Return the registered algorithm with the name that a pickle contains."""
    return CATALOGUE.find(name)


def _pickle_by_name(algorithm: Algorithm) -> Any:
    """Pickle a registered algorithm by its name.

    Why: its functions may be lambdas, which cannot be pickled.
    """
    if any(entry is algorithm for entry in CATALOGUE):
        return _unpickle_algorithm, (algorithm.name,)
    return object.__reduce_ex__(algorithm, 2)


copyreg.pickle(Algorithm, _pickle_by_name)
