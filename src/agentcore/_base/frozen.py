"""`@frozen`: a frozen, slotted standard dataclass, cheap to define and to build.

A run writes about seven records a step, and there are some ninety kinds of values, so
both costs of a frozen dataclass matter here:

- Building one. The generated `__init__` goes through `object.__setattr__` for every
  field (about 0.2 µs each). Ours turns the new object into a twin class of the same
  layout that allows plain stores, fills it, and turns it back: three times faster for
  eight fields, and just as frozen for everyone outside.
- Defining one. `dataclass(frozen=True)` inspects every annotation and compiles six
  methods per class, over a millisecond each time. Ours makes the slotted class, shares
  one generic method of each kind, and leaves the rest for later: `__init__` is compiled
  when a class turns out to be built often, the fields are described when somebody asks.

`dataclasses.fields`, `replace`, `asdict`, pickling, `match` and pydantic see a standard
frozen dataclass.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")

_NOT_COPIED = frozenset({"__dict__", "__weakref__"})
_UNCOMPILED = 2
"""Objects of a class that are built without compiling its `__init__`: constants."""


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, slotted dataclass. Its bases must have no slots."""
    annotations = inspect.get_annotations(cls)
    names = tuple(annotations)
    namespace = {k: v for k, v in vars(cls).items() if k not in _NOT_COPIED}
    defaults = {name: namespace.pop(name) for name in names if name in namespace}
    namespace |= _SHARED
    namespace["__slots__"] = names
    namespace["__match_args__"] = names
    namespace["__dataclass_fields__"] = _Fields(cls.__name__, annotations, defaults)
    kind: Any = type(cls)
    made = kind(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _first_init(made, defaults)
    return cast("type[T]", made)


class _Fields:
    """Stands for `__dataclass_fields__` until somebody looks at it."""

    __slots__ = ("_annotations", "_defaults", "_name")

    def __init__(
        self, name: str, annotations: dict[str, Any], defaults: dict[str, Any]
    ) -> None:
        self._name = name
        self._annotations = annotations
        self._defaults = defaults

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        namespace = {"__annotations__": self._annotations, "__doc__": ""}
        namespace |= self._defaults
        bare = dataclasses.dataclass(init=False, repr=False, eq=False)
        plain: Any = bare(type(self._name, (), namespace))
        fields: dict[str, Any] = plain.__dataclass_fields__
        owner.__dataclass_fields__ = fields
        return fields


# --- methods every frozen class shares --------------------------------------------


def _values(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash((type(self), *_values(self)))


def _refuse_set(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return _values(self)


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Plain:
    """Lends its parameters, which say "frozen" from here on."""


_PARAMS: Any = vars(_Plain)["__dataclass_params__"]
_PARAMS.frozen = True

_SHARED: dict[str, Any] = {
    "__dataclass_params__": _PARAMS,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}


# --- __init__: field by field at first, compiled for what is built often ----------


def _first_init(cls: Any, defaults: dict[str, Any]) -> Callable[..., None]:
    left = _UNCOMPILED

    def first_init(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        values = _bind(cls.__match_args__, defaults, args, kwargs)
        if left < 0 or values is None:
            cls.__init__ = _compile_init(cls)  # which also words every error
            cls.__init__(self, *args, **kwargs)
            return
        _setstate(self, values)
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    return first_init


def _bind(
    names: tuple[str, ...],
    defaults: dict[str, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[Any] | None:
    """The value of every field, or `None` where it takes more than a look-up."""
    given = defaults | dict(zip(names, args, strict=False)) | kwargs
    if len(given) != len(names) or len(args) > len(names):
        return None
    if any(name in kwargs for name in names[: len(args)]):
        return None
    if any(isinstance(value, dataclasses.Field) for value in given.values()):
        return None
    return [given[name] for name in names] if given.keys() <= set(names) else None


def _compile_init(cls: Any) -> Callable[..., None]:
    fields = [f for f in dataclasses.fields(cls) if f.init]
    scope: dict[str, Any] = {
        "set_class": object.__setattr__,
        "Cls": cls,
        "Open": _open_twin(cls),
        "ABSENT": object(),
    }
    params = ", ".join(_parameter(f, scope) for f in fields)
    body = ["set_class(self, '__class__', Open)"]
    body += [_store(f) for f in fields]
    body.append("self.__class__ = Cls")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__(self, {params}):\n  " + "\n  ".join(body)
    exec(source, scope)  # noqa: S102 - as `dataclasses` does; field names only
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _open_twin(cls: Any) -> type:
    """A class of the same layout whose objects take plain stores."""
    namespace = {"__slots__": cls.__slots__}
    if hasattr(cls, "__orig_bases__"):  # generic in something
        namespace["__orig_bases__"] = cls.__orig_bases__
    return type(f"Open{cls.__name__}", cls.__bases__, namespace)


def _parameter(f: dataclasses.Field[Any], scope: dict[str, Any]) -> str:
    if f.default is not dataclasses.MISSING:
        scope[f"default_{f.name}"] = f.default
    elif f.default_factory is not dataclasses.MISSING:
        scope[f"factory_{f.name}"] = f.default_factory
        scope[f"default_{f.name}"] = scope["ABSENT"]
    else:
        return f.name
    return f"{f.name}=default_{f.name}"


def _store(f: dataclasses.Field[Any]) -> str:
    if f.default_factory is dataclasses.MISSING:
        return f"self.{f.name} = {f.name}"
    made = f"factory_{f.name}()"
    return f"self.{f.name} = {made} if {f.name} is ABSENT else {f.name}"
