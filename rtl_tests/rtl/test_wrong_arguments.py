"""What Python is given for fabrics, connections and simulations, but is none of them."""

import numpy as np
import pytest
from helpers import program_of

import torusfabric as tf
from torusfabric.errors import InputError

#: None of them is a number, a word, True, False or a fabric.
WRONG = [np.array([1, 2]), np.array(3), np.array(["host", "x"]), {}, object(), 1.5, b"x"]

MAKE = {
    "Beat": lambda wrong: fabric(beat=wrong if getattr(wrong, "ndim", 1) else [3]),
    "Empty": lambda wrong: fabric(empty=wrong),
    "Tables": lambda wrong: fabric(tables=wrong),
    "Link latency": lambda wrong: tf.Torus(3, 3, link_latency=[wrong]),
    "Port": lambda wrong: tf.connect(wrong if np.size(wrong) else [4]),
    "Fabric": lambda wrong: tf.connect("sim", wrong),
    "Jobs": lambda wrong: tf.simulate(fabric(), jobs=wrong if np.size(wrong) == 1 else [wrong]),
}


def fabric(**options):
    """A small fabric."""
    return tf.Fabric(program_of("3x3", "allgather", flits=2), width=8, **options)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("what", MAKE)
def test_wrong_arguments(what, wrong):
    """Each is refused in one line that begins with what it is."""
    with pytest.raises(InputError, match=rf"^{what} must [^\n]*$"):
        MAKE[what](wrong)
