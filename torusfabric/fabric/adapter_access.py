"""Access to the adapters for commands and `FabricSpec`: their options, and the selected adapter.

An *adapter* is a capability around the core, in a folder of `torusfabric.adapters`. A user selects
an adapter by giving the option of its name. Only this module reads the list `ADAPTERS`, so that a
new adapter is entered in one place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..adapters import ADAPTERS
from ..contract.adapter import Adapter, AdapterOptions, System
from ..contract.options import Option
from ..errors import InputError

__all__ = ["options_by_adapter", "select_adapter", "all_adapter_options", "read_system"]


def options_by_adapter(command: str) -> Iterator[tuple[Adapter, list[AdapterOptions]]]:
    """Yield, for each adapter, a pair: the adapter, and the options that it adds to `command`.

    The list of options may be empty.
    """
    for adapter in ADAPTERS:
        yield adapter, [options for options in adapter.options if command in options.commands]


def all_adapter_options() -> dict[str, Option]:
    """Return the options of all adapters, keyed by attribute name (``link_latency``)."""
    found = dict[str, Option]()
    for adapter in ADAPTERS:
        for options in adapter.options:
            found |= options.by_attribute
    return found


def select_adapter(command: str, given: Collection[str]) -> Adapter | None:
    """Return the adapter that the user's options select; None for a fabric without an adapter.

    Parameters
    ----------
    command : str
        Name of the command, such as ``"simulate"``: an adapter may exclude options of one command
        only. Empty where there is no command.
    given : collection of str
        Attribute names of all options that the user gave.

    Raises
    ------
    InputError
        If the options select two adapters, or an option has no meaning with the adapter.

    Examples
    --------
    The option ``width`` belongs to no adapter, so none is selected.

    >>> select_adapter("simulate", ["width"]) is None
    True
    """
    asked = [adapter for adapter in ADAPTERS if adapter.name in given]
    for adapter in asked:
        others = (other.name for other in asked if other is not adapter)
        for name in (*others, *adapter.excluded[""], *adapter.excluded.get(command, ())):
            if name in given:
                option = name.replace("_", "-")
                raise InputError(
                    f"--{option} and --{adapter.name} exclude each other; leave one of them out"
                )
    return asked[0] if asked else None


def read_system(fabric: Any, manifest: Mapping[str, Any]) -> System | None:
    """Return the `System` that a manifest describes: a fabric, completed by an adapter.

    The result is None if the manifest names no adapter.

    Parameters
    ----------
    fabric : Fabric
        The fabric that was read from the same manifest.
    manifest : mapping
        Contents of ``manifest.json``. The name of the adapter is one of its keys.
    """
    (adapter, *_) = [*(each for each in ADAPTERS if each.name in manifest), None]
    read = getattr(adapter.import_part("make"), "read_system", None) if adapter else None
    system: System | None = read(fabric, manifest) if read else None
    return system
