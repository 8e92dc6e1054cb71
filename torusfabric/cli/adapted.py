"""Options of adapters on the command line, and the fabrics that they ask for."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..fabric.adapted import adapter_options, chosen_adapter
from .arguments import add_options, natural, positive, real

if TYPE_CHECKING:
    from ..contract.adapter import Adapter
    from .fabric import Made
    from .parser import Parser

__all__ = ["add_adapter_options", "adapter_of", "make_system"]

#: The readers of values of each kind.
READERS = {"real": real, "natural": natural, "positive": positive}


def add_adapter_options(parser: "Parser", command: str) -> None:
    """Add the options that adapters declare for a command, or say which commands have them."""
    for adapter, every in adapter_options(command):
        if not every:
            served = {name: None for options in adapter.options for name in options.commands}
            parser.elsewhere[f"--{adapter.name}"] = ", ".join(served)
            continue
        group = parser.add_argument_group(adapter.title)
        for options in every:
            how = {
                name: READERS[values] if isinstance(values, str) else {"choices": values}
                for name, values in options.values.items()
            }
            add_options(group, options.text, **how)


def adapter_of(arguments: Namespace) -> "Adapter | None":
    """The adapter that arguments ask for; raises as `chosen_adapter` does."""
    given = [attribute for attribute, _ in arguments.parser.given(arguments)]
    return chosen_adapter(arguments.command, given)


def make_system(arguments: Namespace) -> "Made":
    """Make the fabric that arguments select, and the system that an adapter makes of it."""
    from .fabric import make_fabric

    adapter = adapter_of(arguments)
    if adapter is None:
        return make_fabric(arguments, any_root=True)
    made: list[Made] = []

    def make(**changes: object) -> Any:
        """Make the fabric with some other choices."""
        chosen = Namespace(**vars(arguments) | changes)
        made.append(make_fabric(chosen, any_root=True))
        return made[-1].fabric

    system = adapter.part("make").make_system(make, vars(arguments))
    return made[-1]._replace(system=system)
