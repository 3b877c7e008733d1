"""Running a kernel: arguments become tensors, each core's Python runs once, results become arrays."""

import collections.abc
import contextvars
import copy
import dataclasses
import functools
import inspect
import sys
import threading

from vtrn import _vtrn, arrays
from vtrn.program import Program
from vtrn.settings import Settings, session_options, settings, target_of

_last = threading.local()


def last_counters() -> dict:
    """Counters (instructions, macs, bytes moved, ...) of the last kernel that this thread ran."""
    return dict(getattr(_last, "counters", {}))


class _Arguments:
    """Replaces the arrays in a call's arguments, also inside tuples, lists, dicts and configuration objects."""

    def __init__(self, session):
        self.session = session
        self.bound = {}  # tensor id -> Bound
        self.by_identity = {}  # an array given twice is one tensor
        self.kind = None

    def bind(self, name, value):
        if id(value) in self.by_identity:
            return self.by_identity[id(value)].tensor
        bound = arrays.bind(self.session, name, value)
        self.bound[bound.tensor._id] = self.by_identity[id(value)] = bound
        if self.kind is None:
            self.kind = "torch" if arrays.is_torch(value) else "jax" if arrays.is_jax(value) else "numpy"
        return bound.tensor

    def replace(self, name, value):
        if arrays.is_array(value):
            return self.bind(name, value)
        if isinstance(value, (tuple, list)):
            items = [self.replace(f"{name}_{i}", item) for i, item in enumerate(value)]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if type(value) is dict:
            return {key: self.replace(f"{name}_{key}", item) for key, item in value.items()}
        return self._replace_fields(name, value)

    def _replace_fields(self, name, value):
        from vtrn.nki.language.objects import NKIObject

        if not (isinstance(value, NKIObject) or dataclasses.is_dataclass(value)) or isinstance(value, type):
            return value
        changed = {}
        for field, item in getattr(value, "__dict__", {}).items():
            new = self.replace(f"{name}_{field}", item)
            if new is not item:
                changed[field] = new
        if not changed:
            return value
        value = copy.copy(value)
        for field, item in changed.items():
            object.__setattr__(value, field, item)
        return value


def _named(function, args, kwargs):
    """The arguments with the names of the kernel's parameters, for messages and for the program."""
    try:
        names = list(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # a wrong call raises when the kernel is called
        names = []
    return [names[i] if i < len(names) and names[i] not in kwargs else f"arg{i}" for i in range(len(args))]


def _trace_core(session, core, call, outcome):
    try:
        outcome[core] = session.trace(core, call)
    except BaseException as error:  # raised again in the caller's thread
        outcome[core] = error


def _trace_cores(session, cores, call):
    """Each core's Python, one at a time (the session decides); the result of core 0."""
    if cores == 1:
        return session.trace(0, call)
    outcome = [None] * cores
    context = contextvars.copy_context()
    other = threading.Thread(target=context.run, args=(_trace_core, session, 1, call, outcome), name="vtrn core 1", daemon=True)
    other.start()
    _trace_core(session, 0, call, outcome)
    other.join()
    errors = [result for result in outcome if isinstance(result, BaseException)]
    if errors:  # the other core's error is often only that this one failed
        raise next((e for e in errors if not str(e).endswith("the other core's kernel failed")), errors[0])
    return outcome[0]


def _result(session, arguments, value):
    """What the kernel returned, with arrays for tensors."""
    if isinstance(value, _vtrn.NkiTensor):
        number = session.check_result(value)
        bound = arguments.bound.get(number)
        if bound is not None:
            whole = value.offset == 0 and value.size == bound.tensor.size and value.strides == bound.tensor.strides
            return bound.given if whole else arrays.view_of(bound.memory, value, arguments.kind)
        memory = arguments.pages.get(number)
        if memory is None:
            memory = arguments.pages[number] = session.pages(value)
        return arrays.view_of(memory, value, arguments.kind)
    if isinstance(value, (tuple, list)):
        items = [_result(session, arguments, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _result(session, arguments, item) for key, item in value.items()}
    _check_plain(value)
    return value


# What would come back with tensors of a run that is over: sets, and code that has not run (``yield``, ``async def``).
_NOT_RESULTS = (set, frozenset, collections.abc.Iterator, collections.abc.AsyncIterator, collections.abc.Awaitable)


def _check_plain(value):
    """Refuses results that are no tensors and cannot leave the run."""
    if isinstance(value, _vtrn.VirtualRegister):
        raise _vtrn.NkiTypeError("result: a register; store it to a tensor in shared HBM with nisa.register_store")
    if isinstance(value, _NOT_RESULTS):
        raise _vtrn.NkiTypeError(f"result: a {type(value).__name__}; kernels return tensors in tuples, lists and dicts")


def _session(function, lnc, options, hint, **more):
    chosen = settings.merged(**options)
    name = getattr(function, "__name__", "kernel")
    return _vtrn.Session(
        target_of(chosen.target, hint), cores=lnc or 1, grid=lnc is not None, name=name, **session_options(chosen), **more
    )


def _call(session, function, args, kwargs):
    arguments = _Arguments(session)
    names = _named(function, args, kwargs)
    args = [arguments.replace(name, value) for name, value in zip(names, args, strict=True)]
    kwargs = {name: arguments.replace(name, value) for name, value in kwargs.items()}
    arguments.pages = {}
    return arguments, functools.partial(function, *args, **kwargs)


def launch(function, args, kwargs, lnc=None, options=None, hint=None):
    """Runs a kernel's Python function and returns arrays of the kind that was given."""
    session = _session(function, lnc, options or {}, hint)
    try:
        arguments, call = _call(session, function, args, kwargs)
        value = _trace_cores(session, lnc or 1, call)
        session.finish()
        result = _result(session, arguments, value)
        for bound in arguments.bound.values():
            bound.finish()
        _last.counters = session.counters()
        return result
    finally:
        session.close()


def is_old(kernel):
    """A kernel of the namespace neuronxcc.nki."""
    old = sys.modules.get("vtrn.neuronxcc.nki.kernel")
    return old is not None and isinstance(kernel, old.Kernel)


def _kernel_of(kernel):
    from vtrn.nki.kernel import Kernel

    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def run(kernel, *args, target=None, threads=None, seed=None, stochastic_rounding=None, **kwargs):
    """Runs a kernel (``nki.jit`` or a plain function, ``kernel[2]`` for two cores) with these options."""
    kernel = _kernel_of(kernel)
    options = {"target": target, "threads": threads, "seed": seed, "stochastic_rounding": stochastic_rounding}
    return launch(kernel.function, args, kwargs, kernel.lnc, options, kernel.hint)


def _outputs(value, prefix="out"):
    """[(tensor, name)] of what a kernel returned."""
    if isinstance(value, _vtrn.NkiTensor):
        return [(value, value.name or prefix)]
    if isinstance(value, (tuple, list)):
        return [pair for i, item in enumerate(value) for pair in _outputs(item, f"{prefix}{i}")]
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in _outputs(item, f"{prefix}_{key}")]
    _check_plain(value)
    return []


def record(kernel, args, kwargs, target=None, seed=None):
    """The kernel as a program, and the arrays of the call in the order of the program's inputs."""
    old = is_old(kernel)
    kernel = kernel if old else _kernel_of(kernel)
    lnc = None if old else kernel.lnc
    session = _session(kernel.function, lnc, {"target": target, "seed": seed}, kernel.hint, lazy=True)
    try:
        if old:
            from vtrn.neuronxcc.nki.launch import _call as old_call

            arguments, call = old_call(session, kernel.function, args, kwargs, kernel.grid)
        else:
            arguments, call = _call(session, kernel.function, args, kwargs)
        value = _trace_cores(session, lnc or 1, call)
        session.finish()
        return Program(session.program(_outputs(value))), [bound.given for bound in arguments.bound.values()]
    finally:
        session.close()


def trace(kernel, *args, target=None, seed=None, **kwargs) -> Program:
    """Records a kernel as a program without running it, unless its Python looks at values.

    The arrays only give shapes and dtypes, and values where the kernel's Python looks at them.
    """
    return record(kernel, args, kwargs, target, seed)[0]


__all__ = ["Settings", "last_counters", "launch", "run", "trace"]
