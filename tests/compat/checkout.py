"""What the cases of third_party.py are made of: a table of repositories, the decorator ``case``, and the checkout a case gets.

A case is a function that calls kernels of one file with inputs of our own and compares what they return with a reference. It runs
in a process of its own, so that files of the same name in different repositories do not meet.
"""

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

CASES = {}


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the table; ``kernels`` counts the kernels that it calls."""

    name: str
    repository: str
    path: str
    run: object
    reference: str
    target: str = "trn2"
    kernels: int = 1
    refused: str = ""  # words of the error: the kernel is wrong, or illegal on the chip
    needs: tuple = ()  # Python modules, and checkouts (with a slash in the name)

    @property
    def identity(self):
        return f"{self.repository}:{self.name}"


def case(repository, path, reference="NumPy", **more):
    """Decorator: the function gets a Checkout and returns when all is right."""

    def add(function):
        made = Case(function.__name__, repository, path, function, reference, **more)
        assert made.identity not in CASES, f"two cases are named {made.identity}"
        CASES[made.identity] = made
        return function

    return add


def folder_of(folder, repository):
    """FOLDER/OWNER+NAME; AWS's own, which other tests use too, may also be FOLDER/NAME."""
    owner, name = repository.split("/")
    plain = pathlib.Path(folder) / name
    return plain if owner == "aws-neuron" and plain.is_dir() else pathlib.Path(folder) / f"{owner}+{name}"


class _BarePackages(importlib.abc.MetaPathFinder):
    """Packages of a checkout without their ``__init__``: those often import a serving stack that only a device has."""

    def __init__(self, root, names):
        self.root, self.names = root, names

    def find_spec(self, name, path=None, target=None):
        folder = self.root.joinpath(*name.split("."))
        if name.partition(".")[0] not in self.names or not folder.is_dir():
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec


class Checkout:
    """What a case works with: its repository on disk, modules of it, and comparisons."""

    def __init__(self, folder, made):
        self.case = made
        self.folder = pathlib.Path(folder)
        self.root = folder_of(folder, made.repository)
        self.compared = 0  # arrays
        self.worst = 0.0  # largest error as a share of the allowed one

    def other(self, repository):
        """The folder of another checkout that the case needs."""
        return folder_of(self.folder, repository)

    def module(self, path=None):
        """The case's file, or another one of the repository, as a module; its folder is on the path as for a script."""
        file = self.root / (path or self.case.path)
        if str(file.parent) not in sys.path:
            sys.path.insert(0, str(file.parent))
        name = re.sub(r"\W", "_", file.stem)
        name = name if name.isidentifier() else f"_{name}"
        spec = importlib.util.spec_from_file_location(name, file)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def bare_packages(self, *names):
        sys.meta_path.insert(0, _BarePackages(self.root, names))
        sys.path.insert(0, str(self.root))

    def close(self, got, want, rtol, atol=0.0):
        """Asserts that the arrays are equal within |error| <= atol + rtol * |want|."""
        got, want = as_float(got), as_float(want)
        assert got.shape == want.shape, f"shape {got.shape}, the reference has {want.shape}"
        allowed = atol + rtol * np.abs(want)
        error = np.where(got == want, 0.0, np.abs(got - want))
        share = np.max(error / np.maximum(allowed, np.finfo(np.float64).tiny), initial=0.0)
        self.compared += 1
        self.worst = max(self.worst, float(share)) if np.isfinite(share) else np.inf
        assert share <= 1, (
            f"largest error {np.nanmax(error):.3e} of values up to {np.abs(want).max():.3e}: {share:.2f} times the allowed one"
        )

    def equal(self, got, want):
        self.close(got, want, 0.0)

    def true(self, condition, text):
        """The repository's own verdict."""
        self.compared += 1
        assert condition, text

    def suite(self, *arguments, passed, environment=None):
        """The repository's own tests under ``vtrn run -m pytest``: at least that many pass, none fails."""
        command = [
            sys.executable,
            "-m",
            "vtrn",
            "run",
            "--target",
            self.case.target,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-q",
        ]
        paths = [str(self.root), *sys.path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        done = subprocess.run([*command, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        last = done.stdout.strip().rpartition("\n")[2]
        print(done.stdout[-3000:], done.stderr[-1000:])
        count = re.search(r"(\d+) passed", last)
        self.compared += int(count[1]) if count else 0
        assert done.returncode == 0 and count and int(count[1]) >= passed, f"its tests: {last}"


def as_float(array):
    """Any array as float64 (complex stays complex)."""
    if type(array).__module__.startswith("torch"):
        array = array.detach().cpu()
        array = (array.float() if array.dtype.is_floating_point else array).numpy()
    array = np.asarray(array)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def rng(seed=0):
    """Random numbers that are the same on every run."""
    return np.random.default_rng(seed)


def normal(seed, *shape, scale=1.0):
    return (rng(seed).standard_normal(shape) * scale).astype(np.float32)


def uniform(seed, *shape, low=0.0, high=1.0):
    return rng(seed).uniform(low, high, shape).astype(np.float32)


def softmax(x):
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def bfloat16(array):
    """A PyTorch tensor of bfloat16, and the values it holds as float64."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(torch.bfloat16)
    return tensor, as_float(tensor)


def doc_line(function):
    return (inspect.getdoc(function) or function.__name__.replace("_", " ")).partition("\n")[0].rstrip(".")
