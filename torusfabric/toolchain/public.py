"""Type checks for public functions and classes: a wrong argument type gives a one-line error.

A function that is marked with `public` is called without any check. If an unexpected exception
leaves it, the arguments are compared with the annotations. The first argument that does not match
is reported as an `InputError`, in place of the exception. If all arguments match, the exception is
passed on: it shows a defect of this package, or comes from a function of the user.

Flags (parameters annotated ``bool``) are the exception: they are checked before the call. Why: any
value has a truth value, so a wrong flag would raise nothing.

Why other arguments are not checked before the call: their annotations name classes of modules that
may not be imported yet. Most calls come from torusfabric itself and are right. And where a function
checks an argument by itself, its message is more precise.
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
from .values import is_iterable, message_text, require_bool

__all__ = ["public", "public_class", "require_fields"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

#: Words in messages for one value of a type, and for several.
TYPE_WORDS: dict[Any, tuple[str, str]] = {
    bool: ("True or False", "True or False"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    bytes: ("bytes", "bytes"),
    type(None): ("None", "None"),
    os.PathLike: ("a path", "paths"),
    collections.abc.Callable: ("a function", "functions"),
}

#: The abstract class that numbers of Python and numpy match, by annotation. A bool is no number.
NUMBER_CLASSES = {int: Integral, float: Real, complex: Real}


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that users call, so that a wrong argument type gives a one-line error.

    Raises
    ------
    InputError
        From the marked function: names the first parameter whose argument does not match the
        annotation.

    Examples
    --------
    >>> @public
    ... def double(words: list[int], *, large: bool = False) -> list[int]:
    ...     return [word * 2 for word in words] if len(words) else []
    >>> double([1, 2])
    [2, 4]
    >>> double(None)
    Traceback (most recent call last):
    torusfabric.errors.InputError: words must be a list of integers, not None
    >>> double([1], large="no")
    Traceback (most recent call last):
    torusfabric.errors.InputError: large must be True or False, not 'no'
    """
    flags = [name for name, hint in function.__annotations__.items() if hint in (bool, "bool")]

    @wraps(function)
    def call_with_checks(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in flags:
            if name in kwargs:
                require_bool(name, kwargs[name])
        try:
            return function(*args, **kwargs)
        except TorusfabricError:
            raise
        except Exception:
            refusal = _argument_error(function, args, kwargs)
            if refusal is None:
                raise
        raise refusal

    return call_with_checks


def public_class(kind: C) -> C:
    """Mark a class that users construct: apply `public` to the constructor and the public methods.

    Inherited methods and generators are left alone.

    Parameters
    ----------
    kind : type
        The class, which is changed in place and returned.

    Examples
    --------
    >>> @public_class
    ... class Ring:
    ...     def __init__(self, nodes: int) -> None:
    ...         self.last = nodes - 1
    >>> Ring("x")
    Traceback (most recent call last):
    torusfabric.errors.InputError: nodes must be an integer, not 'x'
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(public(member.__func__)))
        elif inspect.isfunction(member) and not inspect.isgeneratorfunction(member):
            setattr(kind, name, public(member))
    return kind


def _argument_error(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> InputError | None:
    """Return the error about the first argument that does not match its annotation, if any.

    Parameters
    ----------
    function : callable
        The function whose annotations are compared with the arguments.
    args, kwargs
        Arguments of the failed call of `function`.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None  # Python's own error names the argument that is missing or superfluous
    hints = _evaluate_hints(function)
    for name, value, hint in _annotated_arguments(bound, hints):
        if not _matches_hint(value, hint):
            return InputError(f"{name} must be {_describe_hint(hint)}, not {message_text(value)}")
    return None


def _annotated_arguments(
    bound: inspect.BoundArguments, hints: Mapping[str, Any]
) -> collections.abc.Iterator[tuple[str, Any, Any]]:
    """Yield a tuple for each argument of a call: name, value and annotation.

    `bound` has the arguments of the call, and `hints` the annotations of the function by parameter.
    """
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
    """Check the fields of an instance of a dataclass against their annotations.

    Parameters
    ----------
    value : dataclass instance
        The instance, often checked by its own ``__post_init__``.

    Raises
    ------
    InputError
        Names the first field of a wrong type.
    """
    hints = _evaluate_hints(type(value).__init__)
    for name in value.__dataclass_fields__:
        if not _matches_hint(found := getattr(value, name), hint := hints.get(name, Any)):
            what = f"{name} of {type(value).__name__}"
            raise InputError(f"{what} must be {_describe_hint(hint)}, not {message_text(found)}")


@cache
def _evaluate_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the evaluated annotations of a function, by parameter name.

    An annotation may use names that its module imports only for type checkers. If the class cannot
    be imported, the annotation is `Any`.
    """
    names = _names_for_hints(function.__module__)
    hints = {}
    for name, hint in function.__annotations__.items():
        try:
            hints[name] = eval(hint, names) if isinstance(hint, str) else hint
        except Exception:
            hints[name] = Any  # the class belongs to an extra that is not installed
    return hints


@cache
def _names_for_hints(module: str) -> dict[str, Any]:
    """Return the values of all names that annotations in a module may use, by name.

    These are the names of the module, and those that it imports under ``if TYPE_CHECKING:``.
    """
    home = sys.modules[module]
    names = dict(vars(home))
    with suppress(OSError, TypeError):  # a module without a source file, such as an interpreter's
        for block in ast.parse(inspect.getsource(home)).body:
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                for line in block.body:
                    with suppress(ImportError):
                        exec(compile(ast.Module([line], []), module, "exec"), names)
    return names


def _matches_hint(value: Any, hint: Any) -> bool:
    """True if `value` matches the annotation `hint`, or if that cannot be decided."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_matches_hint(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin is not None:
        return not isinstance(origin, type) or _matches_generic(value, origin, inner)
    if hint is None:
        return value is None
    if hint in NUMBER_CLASSES:
        return isinstance(value, NUMBER_CLASSES[hint]) and not isinstance(value, bool)
    if not isinstance(hint, type):
        return True  # Any, a variable, Self
    with suppress(TypeError):  # a protocol that cannot be checked at run time
        return isinstance(value, hint)
    return True


def _matches_generic(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    """True if a value matches an annotation with parameters: a collection, an array or a function.

    Parameters
    ----------
    value : object
        The value to compare with the annotation.
    origin : type
        Class of the annotation, such as `list`.
    inner : tuple
        Parameters in brackets.
    """
    if origin is collections.abc.Callable:
        return callable(value)
    if hasattr(value, "dtype"):
        if origin.__name__ == "ndarray":
            return _matches_array(value, inner)
        value = value.tolist() if getattr(value, "size", 0) else None
        return isinstance(value, list) and all(_matches_hint(each, inner[0]) for each in value)
    if not isinstance(value, origin):
        return False
    if issubclass(origin, collections.abc.Mapping):
        return all(
            _matches_hint(k, inner[0]) and _matches_hint(v, inner[1]) for k, v in value.items()
        )
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(_matches_hint, value, inner))
    if isinstance(value, collections.abc.Collection) and is_iterable(value) and inner:
        return all(_matches_hint(each, inner[0]) for each in value)
    return True


def _matches_array(value: Any, inner: tuple[Any, ...]) -> bool:
    """True if the type of an array's elements matches its annotation.

    `value` is the array, and `inner` has the entries in the brackets of the annotation.
    """
    (kind,) = get_args(inner[-1]) or (Any,)
    kind = get_origin(kind) or kind
    return not isinstance(kind, type) or issubclass(value.dtype.type, kind)


def _describe_hint(hint: Any, *, many: bool = False) -> str:
    """Return an annotation in words, for messages: ``list[int]`` is "a list of integers".

    Parameters
    ----------
    hint : type
        The annotation, evaluated: a class, a union, or a generic type.
    many : bool
        True for the plural, such as "lists of integers".
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        *most, last = dict.fromkeys(_describe_hint(each, many=many) for each in inner)
        return f"{', '.join(most)} or {last}" if most else last
    if origin is Literal:
        return " or ".join(map(str, inner))
    kind = origin or hint
    name = getattr(kind, "__name__", str(kind))
    if name == "ndarray":
        return "an array" + (" of integers" if "integer" in str(inner) else "")
    if name == "integer":  # numpy's class
        kind = int
    if kind in TYPE_WORDS:
        return TYPE_WORDS[kind][many]
    if isinstance(kind, type) and issubclass(kind, collections.abc.Mapping) and inner:
        key, value = (_describe_hint(each, many=True) for each in inner)
        return f"{'dictionaries' if many else 'a dictionary'} of {key} to {value}"
    if kind is tuple and inner:
        more = inner[-1] is Ellipsis
        each = [_describe_hint(one, many=more) for one in inner if one is not Ellipsis]
        return f"{'tuples' if many else 'a tuple'} of {' and '.join(each)}"
    if isinstance(kind, type) and issubclass(kind, collections.abc.Iterable) and inner:
        return f"{'lists' if many else 'a list'} of {_describe_hint(inner[0], many=True)}"
    return name if many else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
