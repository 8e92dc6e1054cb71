"""Names of signals that are the same in every version of Python.

All signals here are given their names. Those of Amaranth's library and of its platforms would have
the names of variables, which Amaranth finds in bytecode: in some versions of Python, and not in
others; and on the order of names depends what tools place where.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from amaranth import tracer

__all__ = ["given_names"]


@contextlib.contextmanager
def given_names() -> Iterator[None]:
    """Leave signals meanwhile without a name, unless they are given one or must have one."""
    found = tracer.get_var_name

    def given(depth: int = 2, **options: Any) -> Any:
        return options["default"] if "default" in options else found(depth + 1)

    tracer.get_var_name = given
    try:
        yield
    finally:
        tracer.get_var_name = found
