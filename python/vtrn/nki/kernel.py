"""nki.jit and nki.simulate: a kernel as a callable that takes arrays."""

import copy
import functools

from vtrn import _vtrn
from vtrn.launch import launch


class Kernel:
    """A function that runs on the virtual chip. ``kernel[2](...)`` runs it on two cores.

    Called inside another kernel it is plain Python: the function is inlined.
    """

    def __init__(self, function, options=None):
        if not callable(function):
            raise _vtrn.NkiTypeError(f"nki.jit: {type(function).__name__} is not a function")
        self.__name__ = type(function).__name__  # of callable objects
        functools.update_wrapper(self, function)
        self.function = function
        self.lnc = None
        self.schedule = None
        self.hint = (options or {}).get("platform_target")  # the least binding way to choose the target

    def __call__(self, *args, **kwargs):
        if _vtrn.is_tracing():
            return self.function(*args, **kwargs)
        return launch(self.function, args, kwargs, self.lnc, hint=self.hint)

    def __getitem__(self, lnc):
        if isinstance(lnc, tuple) and len(lnc) == 1:
            lnc = lnc[0]
        try:
            lnc = lnc.__index__()
        except AttributeError:
            raise _vtrn.NkiTypeError(
                f"{self.__name__}[{lnc!r}]: the launch grid is the number of cores, 1 or 2 (grids of neuronxcc.nki are gone)"
            ) from None
        if lnc not in (1, 2):
            raise _vtrn.NkiValueError(f"{self.__name__}[{lnc}]: a kernel runs on 1 or 2 cores")
        kernel = copy.copy(self)
        kernel.lnc = lnc
        return kernel

    def with_schedule(self, schedule):
        """A kernel with scheduling edges [(consumer, producer or producers)]; they change no values."""
        kernel = copy.copy(self)
        kernel.schedule = list(schedule)
        return kernel

    def __get__(self, instance, owner=None):
        """Kernels may be methods."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self):
        return f"<Kernel {self.__name__}{'' if self.lnc is None else f'[{self.lnc}]'}>"


def jit(fn=None, **options):
    """Decorator: ``@nki.jit``, ``@nki.jit(...)`` or ``nki.jit(fn)``.

    Options are for AWS's compiler and are ignored, but for ``platform_target``, which is used when nothing else names one.
    """
    if fn is None:
        return functools.partial(jit, **options)
    return fn if isinstance(fn, Kernel) else Kernel(fn, options)


def simulate(kernel):
    """The kernel as a callable on NumPy, PyTorch or JAX arrays. On vtrn that is what every kernel is."""
    return jit(kernel)


cpu_simulate = simulate
