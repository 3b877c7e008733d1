"""NKIObject: the base of configuration objects that kernels pass around."""

import abc
import dataclasses
import inspect


def _fields(cls):
    """Annotated fields in order, base classes first: name -> default or _UNSET."""
    fields = {}
    for base in reversed(cls.__mro__):
        for name in base.__dict__.get("__annotations__", {}):
            if not str(base.__annotations__[name]).startswith(("ClassVar", "typing.ClassVar")):
                fields[name] = base.__dict__.get(name, fields.get(name, _UNSET))
    return fields


_UNSET = object()


def _takes_unset(field):
    """A dataclass field that its constructor asks for."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_plain(cls, name):
    """A class attribute that is a value: a field without an annotation."""
    value = inspect.getattr_static(cls, name, _UNSET)
    return value is not _UNSET and not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")


class _NKIObjectType(abc.ABCMeta):
    """Lets dataclasses be made as AWS's compiler makes objects: fields need no value, and class attributes are fields too."""

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace, **options)
        cls._has_own_init = "__init__" in namespace  # asked before a decorator adds one

    def __call__(cls, *args, **kwargs):
        maker = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
        if not dataclasses.is_dataclass(maker) or maker.__dict__.get("_has_own_init"):
            return super().__call__(*args, **kwargs)
        fields = [field for field in dataclasses.fields(cls) if field.init]
        unset = [field.name for field in fields[len(args) :] if field.name not in kwargs and _takes_unset(field)]
        names = {field.name for field in fields}
        plain = {name: value for name, value in kwargs.items() if name not in names and _is_plain(cls, name)}
        for name in plain:
            del kwargs[name]
        made = super().__call__(*args, **kwargs, **dict.fromkeys(unset, _UNSET))
        for name in unset:
            if getattr(made, name) is _UNSET:
                object.__delattr__(made, name)
        for name, value in plain.items():
            object.__setattr__(made, name, value)
        return made


class NKIObject(metaclass=_NKIObjectType):
    """Subclasses with annotated fields get a constructor that takes them, as dataclasses do; ``__post_init__`` is called.

    A field that has no default and is not given stays unset until the kernel sets it, as in AWS's compiler. A subclass may
    also be a dataclass (frozen or not), of which the same is true, or define its own ``__init__``.
    """

    def __init__(self, *args, **kwargs):
        cls = type(self)
        fields = _fields(cls)
        if len(args) > len(fields):
            raise TypeError(f"{cls.__name__}() takes {len(fields)} arguments, {len(args)} were given")
        given = dict(zip(fields, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{cls.__name__}(): argument {name} is given twice")
            if fields and name not in fields and not _is_plain(cls, name):
                raise TypeError(f"{cls.__name__}(): no field {name}; it has {', '.join(fields)}")
            given[name] = value
        for name, default in fields.items():
            if name not in given and default is not _UNSET:
                given[name] = default
        for name, value in given.items():
            object.__setattr__(self, name, value)
        post = getattr(self, "__post_init__", None)
        if post is not None:
            post()
