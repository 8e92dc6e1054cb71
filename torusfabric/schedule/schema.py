"""The JSON Schema of schedule files, and the messages about files that violate it.

The schema is the file ``schedule.schema.json`` beside this module. Each of its descriptions
completes the sentence "x must be ..", and serves as the text of the message about a wrong value. So
the form of a file and the messages cannot contradict each other.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import InputError
from ..toolchain.reading import excerpt, json_location

__all__ = ["check_head", "check_round", "schema"]


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of a schedule file.

    Examples
    --------
    >>> schema()["properties"]["switching"]["enum"]
    ['store-and-forward', 'circuit']
    """
    text = files(__package__).joinpath("schedule.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def check_head(data: Any) -> None:
    """Check a schedule file against the JSON Schema of such files, except for its rounds.

    `check_round` checks each round.

    Parameters
    ----------
    data : object
        The JSON value of the whole file.

    Raises
    ------
    InputError
        If the file violates the schema. The message names the location of the first violation.
    """
    if isinstance(data, dict) and isinstance(data.get("rounds"), list):
        data = data | {"rounds": []}
    _check_value(data, [])


def check_round(entry: Any, number: int) -> None:
    """Check one round of a schedule file against the JSON Schema of such files.

    Parameters
    ----------
    entry : object
        The JSON value of the round, a list of transfers.
    number : int
        Number of the round for messages; the first round has number 0.

    Raises
    ------
    InputError
        If the round violates the schema. The message names the location of the first violation.
    """
    path: list[str | int] = ["rounds", number]
    if not isinstance(entry, list):
        _check_value(entry, path)
    for place, transfer in enumerate(entry):
        _check_value(transfer, [*path, place])


@cache
def _validators() -> tuple[Any, ...]:
    """Return the validators of a schedule file, of one round, and of one transfer.

    The result is (file, None, round, transfer). Each validator has the depth of its JSON value as
    its index: the file has depth 0, its list of rounds depth 1, a round depth 2, and a transfer
    depth 3. The list of rounds needs no validator, because its rounds are checked one by one.

    A validator is an object of the package jsonschema. Unlike JSON Schema, these validators refuse
    1.0 where an integer is required.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    strict = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, x: type(x) is int)
    kind = extend(Draft202012Validator, type_checker=strict)
    whole = kind(schema())
    parts = schema()["properties"]["rounds"]["items"], schema()["$defs"]["transfer"]
    return (whole, None, *(whole.evolve(schema=part) for part in parts))


def _check_value(value: Any, path: list[str | int]) -> None:
    """Check one JSON value of a schedule file, and raise an `InputError` if it is wrong.

    `path` is the location of the value: ``[]`` for the file, ``["rounds", 2]`` for a round,
    ``["rounds", 2, 0]`` for a transfer.
    """
    for error in _validators()[len(path)].iter_errors(value):
        raise InputError(_violation_text(error, json_location([*path, *error.absolute_path])))


def _violation_text(error: Any, place: str) -> str:
    """Return the message about a violation of the schema, such as "version must be 1, not 2".

    `error` is the violation, a ``ValidationError`` of the package jsonschema. `place` is the text
    for its location in the file.
    """
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{place or 'Schedule'} must have {' and '.join(missing)}"
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        extra = next(key for key in error.instance if key not in known)
        return (
            f"{place or 'Schedule'} must have no keys but {', '.join(known)}, not {excerpt(extra)}"
        )
    what = error.schema.get("description", "valid")
    return f"{place or 'Schedule'} must be {what}, not {excerpt(error.instance)}"
