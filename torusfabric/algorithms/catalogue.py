"""The catalogue of algorithms.

Whoever adds an algorithm writes one module and enters it in `CATALOGUE`, before those it should be
preferred to where both apply.
"""

import difflib

from ..errors import InputError
from .algorithm import Algorithm, Options
from .arrowhead.spanning_tree import SPANNING_TREE
from .arrowhead.wormhole_forest import WORMHOLE_FOREST
from .circuit.diagonal import DIAGONAL
from .circuit.lee_code import LEE_CODE
from .circuit.max_flow import MAX_FLOW
from .oblivious.hamiltonian import HAMILTONIAN
from .oblivious.one_packet import ONE_PACKET
from .oblivious.redistribute import REDISTRIBUTE
from .table.bufferless import BUFFERLESS
from .table.matching import MATCHING
from .table.necklace import NECKLACE

__all__ = ["CATALOGUE", "Algorithm", "Options", "choose", "find"]

#: All algorithms, in order of preference.
CATALOGUE: tuple[Algorithm, ...] = (
    LEE_CODE,
    HAMILTONIAN,
    BUFFERLESS,
    ONE_PACKET,
    MATCHING,
    WORMHOLE_FOREST,
    MAX_FLOW,
    DIAGONAL,
    SPANNING_TREE,
    NECKLACE,
    REDISTRIBUTE,
)  # fmt: skip


def find(name):
    """The algorithm of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    names = [algorithm.name for algorithm in CATALOGUE]
    if name in names:
        return CATALOGUE[names.index(name)]
    close = difflib.get_close_matches(name, names, 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise InputError(f"Algorithm must be one of {', '.join(names)}, not {name!r}{hint}")


def choose(topology, collective, options=None):
    """The first algorithm of the catalogue that serves a selection.

    Raises
    ------
    InputError
        If none does; says what each algorithm for this collective would need.
    """
    options = options or Options()
    reasons = []
    for algorithm in CATALOGUE:
        if collective.kind in algorithm.collectives:
            reason = algorithm.why_not(topology, collective, options)
            if reason is None:
                return algorithm
            reasons.append(f"{algorithm.name} needs {reason}")
    detail = "; ".join(reasons) or "no algorithm plans this collective yet"
    raise InputError(f"No algorithm fits {topology} {collective.kind}: {detail}")
