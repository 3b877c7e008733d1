"""nki.jit and its relatives: they all make a kernel that runs when it is called."""

import copy
import functools
import inspect

from vtrn import _vtrn
from vtrn.neuronxcc.nki.launch import grid_of, launch, record
from vtrn.neuronxcc.nki.tile import fail
from vtrn.neuronxcc.nki.typing import arrays_of

DEFAULT_TARGET = "trn2"  # the newest chip that NKI 0.1 knows; used when nothing else names one


class Latency:
    """Latencies of a benchmark. A run of the timing model takes the same time always, so every percentile is that time."""

    def __init__(self, measure):
        self._measure, self._us = measure, None

    def get_latency_percentile(self, percentile):
        """Microseconds that the timing model predicts (docs/timing.md)."""
        if not 0 <= percentile <= 100:
            fail("get_latency_percentile", f"{percentile} is not between 0 and 100")
        if self._us is None:
            self._us = self._measure().time().total_ps / 1e6
        return self._us


class BenchmarkResult:
    """What nki.benchmark knows after a call: ``nc_latency``."""

    def __init__(self, measure):
        self.nc_latency = Latency(measure)


class Kernel:
    """A function that runs on the virtual chip. ``kernel[2, 4](...)`` runs it for each place of a launch grid.

    Called inside another kernel it is plain Python: the function is inlined.
    """

    def __init__(self, function, options=None, grid=(), keeps_result=False):
        functools.update_wrapper(self, function)
        del self.__wrapped__  # test runners look through it and take kernels for tests by their names
        self.__signature__ = inspect.signature(function)
        self.function, self.grid, self.options, self.keeps_result = function, grid, dict(options or {}), keeps_result
        self.benchmark_result = None

    @property
    def hint(self):
        return self.options.get("platform_target") or DEFAULT_TARGET

    def __call__(self, *args, **kwargs):
        if _vtrn.is_tracing():
            return self.function(*args, **kwargs)
        args, kwargs = arrays_of(args, kwargs)
        result = launch(self.function, args, kwargs, self.grid, self.hint)
        if self.keeps_result:
            self.benchmark_result = BenchmarkResult(lambda: record(self.function, args, kwargs, self.grid, self.hint))
        return result

    def __getitem__(self, grid):
        kernel = copy.copy(self)
        kernel.grid = grid_of(grid)
        return kernel

    def __get__(self, instance, owner=None):
        """Kernels may be methods."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self):
        return f"<Kernel {self.__name__}{list(self.grid) if self.grid else ''}>"


def _made(function, options, keeps_result=False):
    if function is None:
        return functools.partial(_made, options=options, keeps_result=keeps_result)
    if isinstance(function, Kernel):
        return Kernel(function.function, {**function.options, **options}, function.grid, keeps_result)
    return Kernel(getattr(function, "function", function), options, keeps_result=keeps_result)


def jit(func=None, mode="auto", **options):
    """A kernel. Whatever ``mode`` says it runs on the virtual chip; ``platform_target`` names the chip when nothing else does."""
    return _made(func, options)


def trace(func=None, **options):
    """A kernel, as nki.jit makes it."""
    return _made(func, options)


def baremetal(kernel=None, **options):
    """A kernel that runs when it is called. Names of files to save are accepted; there is no NEFF to save."""
    return _made(kernel, options)


def benchmark(kernel=None, **options):
    """A kernel that runs when it is called, and afterwards has ``benchmark_result``; its latencies are predicted."""
    return _made(kernel, options, keeps_result=True)


def profile(func=None, **options):
    """A kernel that runs when it is called, as nki.benchmark makes it; vtrn.profile tells more."""
    return _made(func, options, keeps_result=True)


def simulate_kernel(kernel, *args, **kwargs):
    """Runs a kernel on NumPy arrays and returns its results."""
    return _made(kernel, {})(*args, **kwargs)
