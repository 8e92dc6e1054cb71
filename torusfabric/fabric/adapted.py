"""The adapters that there are: their options, and the one that choices ask for.

Nothing else reads the list of adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..adapters import ADAPTERS
from ..contract.adapter import Adapter, Options, System
from ..contract.options import Option
from ..errors import InputError

__all__ = ["adapter_options", "chosen_adapter", "every_option", "read_system"]


def adapter_options(command: str) -> Iterator[tuple[Adapter, list[Options]]]:
    """Yield each adapter with the options that it adds to a command, which may be none."""
    for adapter in ADAPTERS:
        yield adapter, [options for options in adapter.options if command in options.commands]


def every_option() -> dict[str, Option]:
    """Return the options of all adapters, by their attributes."""
    found = dict[str, Option]()
    for adapter in ADAPTERS:
        for options in adapter.options:
            found |= options.declared
    return found


def chosen_adapter(command: str, given: Collection[str]) -> Adapter | None:
    """Return the adapter that choices ask for; None for the core alone.

    Parameters
    ----------
    given : collection of str
        The attributes of all options that are given.

    Raises
    ------
    InputError
        If two adapters are asked for, or an option has no meaning with the adapter.

    Examples
    --------
    >>> chosen_adapter("simulate", ["width"]) is None
    True
    """
    asked = [adapter for adapter in ADAPTERS if adapter.name in given]
    for adapter in asked:
        others = (other.name for other in asked if other is not adapter)
        for name in (*others, *adapter.excluded[""], *adapter.excluded.get(command, ())):
            if name in given:
                option = name.replace("_", "-")
                raise InputError(f"--{option} must be left out with --{adapter.name}")
    return asked[0] if asked else None


def read_system(fabric: Any, manifest: Mapping[str, Any]) -> System | None:
    """Return the system that a manifest describes, given its fabric; None for the core alone."""
    (adapter, *_) = [*(each for each in ADAPTERS if each.name in manifest), None]
    read = getattr(adapter.part("make"), "read_system", None) if adapter else None
    system: System | None = read(fabric, manifest) if read else None
    return system
