"""The emitted bench of a top, beside the files that all benches have."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["Bench"]


class Bench(NamedTuple):
    """A bench.

    Parameters
    ----------
    files : mapping of str to (str or path)
        The sources of further files by their names in the bench; a text is a path among the
        sources of all benches.
    top : str
        The module that is driven.
    verilog : mapping of str to str
        The texts of Verilog files of the bench itself.
    """

    files: Mapping[str, str | Path]
    top: str
    verilog: Mapping[str, str] = MappingProxyType({})
