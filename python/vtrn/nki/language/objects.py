"""NKIObject: the base of configuration objects that kernels pass around."""


def _fields(cls):
    """Annotated fields in order, base classes first: name -> default or _UNSET."""
    fields = {}
    for base in reversed(cls.__mro__):
        for name in base.__dict__.get("__annotations__", {}):
            if not str(base.__annotations__[name]).startswith(("ClassVar", "typing.ClassVar")):
                fields[name] = base.__dict__.get(name, fields.get(name, _UNSET))
    return fields


_UNSET = object()


class NKIObject:
    """Subclasses with annotated fields get a constructor that takes them, as dataclasses do; ``__post_init__`` is called.

    A field that has no default and is not given stays unset until the kernel sets it, as in AWS's compiler. A subclass may
    also be a dataclass (frozen or not), which asks for all its fields, or define its own ``__init__``.
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
            if fields and name not in fields:
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
