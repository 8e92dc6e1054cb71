"""Public functions and classes: an argument of another type is refused in one line.

A function that is marked with `public` runs as ever, and refuses by itself what it looks at. If
another error comes out of it, its arguments are compared with its annotations, and the first that
does not fit is named in place of that error. An error of right arguments stays as it is: it is a
defect of ours, or comes from a function of the user. Flags are compared before the call, because
any value counts as one of them and no error would come.

Why not before each call: annotations name classes of rooms that are not imported yet, calls inside
of the package have right arguments, and messages of the functions themselves say more.
"""

import ast
import collections.abc
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from typing_extensions import is_typeddict

from ..errors import InputError, TorusfabricError
from .values import flag, is_several, shown

__all__ = ["public", "public_class", "require_fields"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

#: Words for one value of a type, and for several.
WORDS: dict[Any, tuple[str, str]] = {
    bool: ("True or False", "True or False"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    bytes: ("bytes", "bytes"),
    type(None): ("None", "None"),
    os.PathLike: ("a path", "paths"),
    collections.abc.Callable: ("a function", "functions"),
}

#: What numbers of Python and numpy are taken for; True and False are no numbers.
NUMBERS = {int: Integral, float: Real, complex: Real}


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that users call, so that it refuses arguments of other types in one line.

    Raises
    ------
    InputError
        Names the first parameter that is of another type than its annotation says.

    Examples
    --------
    >>> @public
    ... def double(words: list[int], *, large: bool = False) -> list[int]:
    ...     return [word * 2 for word in words] if len(words) else []
    >>> double([1, 2])
    [2, 4]
    >>> double(None)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Words must be a list of integers, not None
    >>> double([1], large="no")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Large must be True or False, not 'no'
    """
    flags = [name for name, hint in function.__annotations__.items() if hint in (bool, "bool")]

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in flags:
            if name in kwargs:
                flag(_title(name), kwargs[name])
        try:
            return function(*args, **kwargs)
        except TorusfabricError:
            raise
        except Exception:
            refusal = _refusal(function, args, kwargs)
            if refusal is None:
                raise
        raise refusal

    return guarded


def public_class(kind: C) -> C:
    """Mark a class that users make and ask: its constructor and its own public methods.

    Examples
    --------
    >>> @public_class
    ... class Ring:
    ...     def __init__(self, nodes: int) -> None:
    ...         self.last = nodes - 1
    >>> Ring("x")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Nodes must be an integer, not 'x'
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(public(member.__func__)))
        elif inspect.isfunction(member) and not inspect.isgeneratorfunction(member):
            setattr(kind, name, public(member))
    return kind


def _title(name: str) -> str:
    """The name of a parameter at the beginning of a message."""
    return name.replace("_", " ").capitalize()


def _refusal(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> InputError | None:
    """The error of the first argument of another type; None if all are right."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None  # Python itself says which argument is missing, or is one too many
    hints = _hints(function)
    for name, value, hint in _arguments(bound, hints):
        if not _fits(value, hint):
            return InputError(f"{_title(name)} must be {_describe(hint)}, not {shown(value)}")
    return None


def _arguments(
    bound: inspect.BoundArguments, hints: Mapping[str, Any]
) -> collections.abc.Iterator[tuple[str, Any, Any]]:
    """The name, the value and the annotation of each argument."""
    for name, value in bound.arguments.items():
        hint = hints.get(name, Any)
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each, hint) for each in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            (options,) = get_args(hint) or (hint,)
            each_hint = typing.get_type_hints(options) if is_typeddict(options) else {}
            yield from ((key, each, each_hint.get(key, Any)) for key, each in value.items())
        else:
            yield name, value, hint


def require_fields(value: Any) -> None:
    """Refuse a value of a class with fields one of which is of another type than is said.

    Raises
    ------
    InputError
        Names the first such field.
    """
    hints = _hints(type(value).__init__)
    for name in value.__dataclass_fields__:
        if not _fits(found := getattr(value, name), hint := hints.get(name, Any)):
            what = f"{_title(name)} of {type(value).__name__}"
            raise InputError(f"{what} must be {_describe(hint)}, not {shown(found)}")


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, with the names that only type checkers import."""
    names = _checked_names(function.__module__)
    hints = {}
    for name, hint in function.__annotations__.items():
        try:
            hints[name] = eval(hint, names) if isinstance(hint, str) else hint
        except Exception:
            hints[name] = Any  # a class of an extra that is not installed
    return hints


@cache
def _checked_names(module: str) -> dict[str, Any]:
    """The names of a module, and those that it imports for type checkers alone."""
    home = sys.modules[module]
    names = dict(vars(home))
    with suppress(OSError, TypeError):  # typed in, without a file
        for block in ast.parse(inspect.getsource(home)).body:
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                for line in block.body:
                    with suppress(ImportError):
                        exec(compile(ast.Module([line], []), module, "exec"), names)
    return names


def _fits(value: Any, hint: Any) -> bool:
    """True if a value is of the type that an annotation says, as far as it can be told."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin is not None:
        return not isinstance(origin, type) or _fits_generic(value, origin, inner)
    if hint is None:
        return value is None
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
    if not isinstance(hint, type):
        return True  # Any, a variable, Self
    with suppress(TypeError):  # a protocol that cannot be looked at
        return isinstance(value, hint)
    return True


def _fits_generic(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    """True if a value is a collection of values of some types, an array or a function."""
    if origin is collections.abc.Callable:
        return callable(value)
    if hasattr(value, "dtype"):
        if origin.__name__ == "ndarray":
            return _fits_array(value, inner)
        value = value.tolist() if getattr(value, "size", 0) else None
        return isinstance(value, list) and all(_fits(each, inner[0]) for each in value)
    if not isinstance(value, origin):
        return False
    if issubclass(origin, collections.abc.Mapping):
        return all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if isinstance(value, collections.abc.Collection) and is_several(value) and inner:
        return all(_fits(each, inner[0]) for each in value)
    return True


def _fits_array(value: Any, inner: tuple[Any, ...]) -> bool:
    """True if an array has numbers of the type that an annotation says."""
    (kind,) = get_args(inner[-1]) or (Any,)
    kind = get_origin(kind) or kind
    return not isinstance(kind, type) or issubclass(value.dtype.type, kind)


def _describe(hint: Any, *, many: bool = False) -> str:
    """A type in words, of one value or of many."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        *most, last = dict.fromkeys(_describe(each, many=many) for each in inner)
        return f"{', '.join(most)} or {last}" if most else last
    if origin is Literal:
        return " or ".join(map(str, inner))
    kind = origin or hint
    name = getattr(kind, "__name__", str(kind))
    if name == "ndarray":
        return "an array" + (" of integers" if "integer" in str(inner) else "")
    if name == "integer":  # that of numpy
        kind = int
    if kind in WORDS:
        return WORDS[kind][many]
    if isinstance(kind, type) and issubclass(kind, collections.abc.Mapping) and inner:
        key, value = (_describe(each, many=True) for each in inner)
        return f"{'dictionaries' if many else 'a dictionary'} of {key} to {value}"
    if kind is tuple and inner:
        more = inner[-1] is Ellipsis
        each = [_describe(one, many=more) for one in inner if one is not Ellipsis]
        return f"{'tuples' if many else 'a tuple'} of {' and '.join(each)}"
    if isinstance(kind, type) and issubclass(kind, collections.abc.Iterable) and inner:
        return f"{'lists' if many else 'a list'} of {_describe(inner[0], many=True)}"
    return name if many else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
