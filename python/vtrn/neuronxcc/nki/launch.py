"""Running kernels of the old namespace: grids of any rank, one program instance after the other, on one core."""

import itertools
import math
import sys
import threading

from vtrn import _vtrn
from vtrn import launch as _launch
from vtrn.neuronxcc.nki.tile import Tensor, copy_into, fail, whole
from vtrn.nki.language import tiles

_local = threading.local()


class Instance:
    """The program instances of a launch: where this one is in the grid, and the HBM tensors that all of them declare."""

    def __init__(self, grid):
        self.grid, self.shared = grid, {}
        self.start((0,) * len(grid))

    def start(self, ids):
        self.ids, self.counts = ids, {}
        self.loops = []  # [call site, iteration] of the running loops
        self.totals = {}  # nl.loop_reduce: call site and other loops -> (outermost loop, tile)
        self.addresses = {}  # (call site, loops) -> (first iterations, addresses, last iterations, addresses used)

    def address(self, site, ask):
        """The address that ``ask()`` gives in the first iteration of the running loops; later ones have the same.

        AWS's compiler runs the Python of a loop's body once, so published kernels move an address on in a loop.
        """
        key = (site, tuple(entry[0] for entry in self.loops))
        now = tuple(entry[1] for entry in self.loops)
        first, made, last, used = self.addresses.get(key, (now, [], now, 0))
        used = used if now == last else 0
        if now == first:
            made.append(ask())
        self.addresses[key] = (first, made, now, used + 1)
        return made[used] if used < len(made) else ask()

    def declare(self, shape, dtype, buffer, name):
        """The n-th HBM tensor of a shape, dtype and name is one tensor in all program instances."""
        key = (shape, dtype, buffer, name)
        number = self.counts[key] = self.counts.get(key, -1) + 1
        made = self.shared.get((key, number))
        if made is None:
            made = self.shared[key, number] = _vtrn.ndarray(shape, dtype=dtype, buffer=buffer, name=name)
        return made


def call_site():
    """Where the kernel called: a code object and an offset in it."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("vtrn."):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def instance():
    """The running program instance."""
    found = getattr(_local, "instance", None)
    if found is None:
        fail("neuronxcc.nki", "outside a kernel; kernels are functions with nki.jit (or nki.trace, ...)", _vtrn.NkiValidationError)
    return found


class _Arguments(_launch._Arguments):
    """Arrays become tensors of the old namespace."""

    def __init__(self, session):
        super().__init__(session)
        self.tensors = {}

    def bind(self, name, value):
        data = super().bind(name, value)
        return self.tensors.setdefault(data._id, Tensor(data, -1))


def _unwrap(value):
    if isinstance(value, Tensor):
        return (value if value.par < 0 else _in_hbm(value)).checked().data
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(item) for item in value)
    if isinstance(value, dict):
        return {key: _unwrap(item) for key, item in value.items()}
    return value


def _in_hbm(value):
    """A tensor that the kernel returns is moved to HBM where it is not there."""
    made = Tensor(_vtrn.ndarray(tuple(value.shape), dtype=value.data.dtype, buffer=tiles.shared_hbm), -1)
    copy_into(made, value)
    return made


def grid_of(key):
    """The sizes of ``kernel[key]``. A size of 0 is one program instance, as published launches have it."""
    sizes = tuple(whole("launch grid", size) for size in (key if isinstance(key, tuple) else (key,)))
    if any(size < 0 for size in sizes):
        fail("launch grid", f"sizes must be positive, not {sizes}")
    return tuple(max(size, 1) for size in sizes)


def _call(session, function, args, kwargs, grid):
    arguments = _Arguments(session)
    names = _launch._named(function, args, kwargs)
    args = [arguments.replace(name, value) for name, value in zip(names, args, strict=True)]
    kwargs = {name: arguments.replace(name, value) for name, value in kwargs.items()}
    arguments.pages = {}
    state = Instance(grid)

    def call():
        outer, _local.instance = getattr(_local, "instance", None), state
        try:
            result = None
            for ids in itertools.product(*map(range, grid)):
                state.start(ids)
                result = function(*args, **kwargs)
            return _unwrap(result)
        finally:
            _local.instance = outer

    return arguments, call


def launch(function, args, kwargs, grid=(), hint=None):
    """Runs every program instance and returns arrays of the kind that was given."""
    session = _launch._session(function, None, {}, hint)
    try:
        arguments, call = _call(session, function, args, kwargs, grid)
        value = session.trace(0, call)
        session.finish()
        result = _launch._result(session, arguments, value)
        for bound in arguments.bound.values():
            bound.finish()
        _launch._last.counters = session.counters()
        return result
    finally:
        session.close()


def record(function, args, kwargs, grid=(), hint=None):
    """Records the kernel as a program, without running it when its Python looks at no value."""
    session = _launch._session(function, None, {}, hint, lazy=True)
    try:
        _, call = _call(session, function, args, kwargs, grid)
        value = session.trace(0, call)
        session.finish()
        return _launch.Program(session.program(_launch._outputs(value)))
    finally:
        session.close()


# ---- what a kernel asks ----


def program_id(axis):
    """The index of this program instance in a dimension of the launch grid."""
    ids = instance().ids
    if not ids and axis == 0:
        return 0
    if not 0 <= axis < len(ids):
        fail("nl.program_id", f"axis {axis}; the launch grid has {len(ids)} dimensions")
    return ids[axis]


def num_programs(axes=None):
    """The number of program instances, in all or in some dimensions of the launch grid."""
    grid = instance().grid
    axes = range(len(grid)) if axes is None else (axes,) if isinstance(axes, int) else axes
    return math.prod(grid[axis] for axis in axes if axis < len(grid))


def program_ndim():
    """The dimensions of the launch grid."""
    return len(instance().grid)
