"""Keyword arguments: NKI 0.1's functions take any. What none of them has is a mistake here."""

import difflib
import functools
import inspect

from vtrn import _vtrn
from vtrn.neuronxcc.nki.tile import fail

IGNORED = ("dge_mode", "engine", "lazy_initialization", "name")  # they choose what has no effect on the values, in any function
_EXEMPT = ("affine_range", "builtin_custom_op", "sequential_range", "static_range")  # loops take hints for a schedule
_RESULT = ("dst", "out", "output")  # as the new namespace names what a function of this one returns


def _refuse(what, name, known):
    if name in _RESULT:
        why = f"no argument {name}; in neuronxcc.nki it returns its result: {name}[...] = {what}(...)"
    else:
        near = difflib.get_close_matches(name, known, 1, 0.7)
        why = f"no argument {name}; " + (f"is {near[0]} meant?" if near else f"it has {', '.join(known)}")
    fail(what, why, _vtrn.NkiTypeError)


def _parameters(function):
    return inspect.signature(function).parameters.values()


def _checked(what, function):
    known = [p.name for p in _parameters(function) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    taken = {*known, *IGNORED}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not kwargs.keys() <= taken:
            _refuse(what, next(name for name in kwargs if name not in taken), known)
        return function(*args, **kwargs)

    return call


def check_all(prefix, names):
    """Replaces the functions of a module that take any keyword argument by ones that do not."""
    for name, function in list(names.items()):
        if not inspect.isfunction(function) or name.startswith("_") or name in _EXEMPT:
            continue
        if any(p.kind is p.VAR_KEYWORD for p in _parameters(function)):
            names[name] = _checked(f"{prefix}.{name}", function)
