"""What all tests have in common."""

import gc
from collections.abc import Iterator

import pytest

from torusfabric.collective import operators

# Elaboration makes many objects, few of them garbage in circles: to look for that less often saves
# a twentieth of all time.
gc.set_threshold(200_000, 20, 50)


@pytest.fixture(autouse=True)
def _operators_of_this_test() -> Iterator[None]:
    """Operators that a test, or an example, registers are known to it alone."""
    known = dict(operators.REGISTERED)
    yield
    operators.REGISTERED.clear()
    operators.REGISTERED.update(known)
