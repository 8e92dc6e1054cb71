"""`FabricSpec`: all choices of a user about a fabric, as one immutable value.

A command line, Python keywords, a manifest and a point of a sweep are all read into a `FabricSpec`.
A *choice* is the value of one option that `torusfabric.fabric.options` or an adapter declares; its
name is that of the option with underscores, such as ``max_flits``.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ..contract.options import check_needs
from ..errors import InputError
from ..toolchain.values import require_type, unknown_name_error
from .adapter_access import select_adapter
from .options import PLANNING_OPTIONS, fabric_options

if TYPE_CHECKING:
    from ..contract.adapter import Adapter
    from .make import BuiltFabric

__all__ = ["FabricSpec"]


class FabricSpec:
    """All choices about a fabric: its collectives, its hardware, and its adapter.

    The value is immutable. A choice has the name of a command-line option, with underscores, and
    the default of the option. ``None`` stands for the default.

    Parameters
    ----------
    topology : str or Topology, optional
        Topology of the network, such as ``"4x4"``; left out if ``plan`` names schedule files.
    collective : str, optional
        One collective or several, separated by commas, such as ``"allgather,allreduce"``.
    **choices
        Options of ``torusfabric verilog`` by their names, such as ``width=32``, ``max_flits=64`` or
        ``bus="axi4"``. Numbers may be given as text.

    Raises
    ------
    InputError
        If a choice is unknown or has a wrong value, excludes another one, or needs another one that
        is missing.

    Examples
    --------
    A specification is made from keywords, turned into the words of a command, built, and simulated.

    >>> import torusfabric as tf
    >>> spec = tf.FabricSpec("2x2", "allgather,allreduce", width=16, max_flits=4)
    >>> spec.width, spec.top, " ".join(spec.words())
    (16, 'host', '2x2 allgather,allreduce --width 16 --max-flits 4')
    >>> made = spec.make()
    >>> made.fabric.predicted_cycles, tf.simulate(made.fabric).passed
    (12, True)
    >>> tf.FabricSpec.parse("2x2 allgather,allreduce --max-flits 4 --width 16") == spec
    True
    """

    def __init__(self, topology: object = None, collective: object = None, **choices: Any) -> None:
        known, given = fabric_options(), {"topology": topology, "collective": collective, **choices}
        for name in given:
            if name not in known:
                raise unknown_name_error("Choice", name, known)
        read = {
            name: known[name].parse_value(value)
            for name, value in given.items()
            if value is not None
        }
        self.__dict__["_given"] = _non_default(read)
        _check_exclusions(self._given)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FabricSpec:
        """Return the `FabricSpec` that the parsed arguments of a command contain.

        Parameters
        ----------
        values : mapping
            Values of options, already converted from text, keyed by attribute name. Entries that
            are no options of a fabric are ignored.

        Raises
        ------
        InputError
            If a choice excludes another one, or needs another one that is missing.
        """
        spec = cls.__new__(cls)
        spec.__dict__["_given"] = _non_default(values)
        _check_exclusions(spec.given())
        return spec

    @classmethod
    def parse(cls, text: str) -> FabricSpec:
        """Return the `FabricSpec` for the words of a command: ``"4x4 allgather --width 8"``.

        Parameters
        ----------
        text : str
            A selection with options, or a whole command that begins with ``torusfabric``, such as
            the ``command`` of a manifest. Options of a whole command that do not describe the
            fabric are ignored.

        Raises
        ------
        InputError
            If a word is unknown, or a choice has a wrong value.
        """
        parser = _WordParser(prog="torusfabric", add_help=False, allow_abbrev=False)
        for option in fabric_options().values():
            how = dict(option.settings) if option.names[-1].startswith("-") else {"nargs": "?"}
            parser.add_argument(*option.names, **how)
        require_type("Choices", text, str, "text, words as on a command line")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise InputError(f"Choices must be words as on a command line ({error})") from None
        whole = words[:1] == ["torusfabric"]
        found, unknown = parser.parse_known_args(words[2 * whole :])
        if unknown and not whole:
            known = [option.names[-1] for option in fabric_options().values()]
            raise unknown_name_error("Choice", unknown[0], known)
        return cls.of(vars(found))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in fabric_options():
            raise AttributeError(f"FabricSpec has no choice {name}")
        return self._given.get(name, _to_immutable(fabric_options()[name].default))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"FabricSpec must stay as it is: replace({name}=..) returns another")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FabricSpec) and self.given() == other.given()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"<FabricSpec {' '.join(self.words())}>"

    @property
    def adapter(self) -> Adapter | None:
        """The adapter that the choices select; None for a fabric without an adapter."""
        return select_adapter("", self._given)

    def replace(self, **changes: Any) -> FabricSpec:
        """Return a `FabricSpec` in which `changes` replace choices; None restores a default."""
        return FabricSpec.of({**self._given, **changes})

    def given(self) -> dict[str, Any]:
        """Return the choices that differ from their defaults, keyed by name."""
        return dict(self._given)

    def values(self) -> dict[str, Any]:
        """Return all choices, including defaults, keyed by name."""
        return {name: getattr(self, name) for name in fabric_options()}

    def words(self) -> Iterator[str]:
        """Yield the words of a command line that make these choices: ``--width``, ``16``, .."""
        for name, value in self._given.items():
            option = fabric_options()[name].names[-1]
            yield from [option] * option.startswith("-")
            if value is not True:
                for each in value if isinstance(value, list | tuple) else [value]:
                    yield f"{each:.12g}" if isinstance(each, float) else str(each)

    def make(self, *, runs: int = 0) -> BuiltFabric:
        """Plan, check and compile the schedules, and build the fabric.

        Parameters
        ----------
        runs : int
            Number of runs that will be simulated, 0 if unknown. Each needs memory of the machine,
            which is checked before a schedule is planned.

        Returns
        -------
        BuiltFabric
            The fabric in ``fabric``, and facts of its schedules in ``facts``. ``system`` is the
            fabric, completed by an adapter; None without an adapter.

        Raises
        ------
        InputError
            If a choice is unknown, does not fit the others, or cannot be built.
        """
        from .make import make_fabric, make_with_adapter  # here, since it imports all hardware

        return (
            make_with_adapter(self, self.adapter) if self.adapter else make_fabric(self, runs=runs)
        )


class _WordParser(argparse.ArgumentParser):
    """An argument parser that raises `InputError` instead of exiting the process."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[:1].upper()}{message[1:]}")


def _non_default(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices in `values` that differ from their defaults, in the order of the options.

    Why: two specifications are equal if these choices are equal, even if one user wrote a default
    and the other did not.
    """
    found = {}
    for name, option in fabric_options().items():
        value = _to_immutable(values.get(name))
        if value is not None and value != _to_immutable(option.default):
            found[name] = value
    return found


def _to_immutable(value: Any) -> Any:
    """Return an immutable value: a tuple in place of a list."""
    return tuple(value) if isinstance(value, list) else value


def _check_exclusions(given: Mapping[str, Any]) -> None:
    """Check that no two choices exclude each other, and that each has the choices that it needs.

    `given` has the choices that differ from their defaults, by name.
    """
    known = fabric_options()
    for name in given if "plan" in given else ():
        if name in PLANNING_OPTIONS and not (name == "root" and given[name] == "any"):
            shown = name.upper() if name in ("topology", "collective") else known[name].names[-1]
            raise InputError(
                f"{shown} and --plan exclude each other, because the file holds a whole plan; "
                f"leave {shown} out"
            )
    texts = ((known[name].names[-1], known[name].text) for name in given)
    check_needs(texts, {name: given.get(name, option.default) for name, option in known.items()})
    select_adapter("", given)
