"""Modules that many modules of a text have instances of, each there once.

They are not part of a netlist: a module says by the names of its instances which it needs.
"""

import re
from typing import TypeAlias

from .chosen_sum import ChosenSum
from .multiplexer import Multiplexer

__all__ = ["SharedModule", "shared_modules"]

SharedModule: TypeAlias = Multiplexer | ChosenSum


def shared_modules(il: str) -> list[SharedModule]:
    r"""Those of which a design in RTLIL has instances.

    Examples
    --------
    >>> [module.name for module in shared_modules("  cell \\sum_3_8 \\the_sum\n")]
    ['sum_3_8']
    """
    names = sorted(set(re.findall(r"^\s*cell \\(\w+) ", il, re.M)))
    meant = (Multiplexer.named(name) or ChosenSum.named(name) for name in names)
    return [module for module in meant if module is not None]
