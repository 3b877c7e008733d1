"""The package around the kernels: names, NKIObject, installing under `nki`, running scripts and modules."""

import dataclasses
import enum
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.language as nl


class Mode(enum.Enum):
    FAST = 1


class Base(nl.NKIObject):
    size: int
    mode: Mode = Mode.FAST


class Derived(Base):
    name: str = "x"
    total: int = 0

    def __post_init__(self):
        self.total = self.size * 2

    @staticmethod
    def helper():
        return 3


def test_nki_objects_are_built_from_their_annotations():
    a = Derived(4, name="y")
    assert (a.size, a.mode, a.name, a.total, a.helper()) == (4, Mode.FAST, "y", 8, 3) and isinstance(a, nl.NKIObject)
    assert nl.NKIObject(anything=1).anything == 1
    for call, words in (
        (lambda: Derived(1, size=2), "given twice"),
        (lambda: Derived(1, wrong=2), "no field wrong"),
        (lambda: Base(1, 2, 3), "takes 2 arguments"),
    ):
        with pytest.raises(TypeError, match=words):
            call()

    unset = Base(mode=Mode.FAST)  # a field without a value is set later, or never
    with pytest.raises(AttributeError, match="size"):
        unset.size
    unset.size = 3
    assert unset.size == 3

    @dataclasses.dataclass(frozen=True)
    class Frozen(nl.NKIObject):
        a: int
        b: tuple = ()

    assert Frozen(1, b=(2,)) == Frozen(1, (2,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Frozen(1).a = 2

    @dataclasses.dataclass
    class Bare(nl.NKIObject):
        count = None  # a field without an annotation

    assert (Bare().count, Bare(count=3).count, Bare.count) == (None, 3, None)

    @dataclasses.dataclass
    class OwnToo(nl.NKIObject):
        sum: int

        def __init__(self, a, b):
            self.sum = a + b

    assert OwnToo(1, b=2).sum == 3
    partly = Frozen(b=(1,))
    with pytest.raises(AttributeError, match="'a'"):
        partly.a
    with pytest.raises(TypeError, match="wrong"):
        Frozen(1, wrong=2)

    class Own(nl.NKIObject):
        def __init__(self, value):
            self.value = value

    assert Own(5).value == 5


def test_modules_and_names_of_the_reference_exist():
    import json

    path = os.environ.get("VTRN_NKI_SIGNATURES")
    if not path:
        names = [
            "language.ndarray",
            "isa.nc_matmul",
            "isa.VirtualRegister",
            "language.NkiTensor",
            "collectives.all_reduce",
            "jit",
            "simulate",
        ]
    else:
        with open(path, encoding="utf-8") as file:
            names = [n.removeprefix("nki.") for n in json.load(file)["nki_0.6"] if n.count(".") < 3]
    missing = []
    for name in names:
        value = nki
        for part in name.split("."):
            value = getattr(value, part, missing)
        if value is missing:
            missing.append(name)
    assert not missing


def test_collectives_import_and_say_what_is_missing():
    from vtrn.nki.collectives import ReplicaGroup, all_gather, rank_id

    assert ReplicaGroup([[0, 1]]).replica_groups == [[0, 1]] and rank_id() == 0
    with pytest.raises(NotImplementedError, match="nki.collectives.all_gather"):
        all_gather([], [], ReplicaGroup([[0]]), 0)


def test_install_puts_the_modules_under_nki(monkeypatch):
    for name in [name for name in sys.modules if name == "nki" or name.startswith("nki.")]:
        monkeypatch.delitem(sys.modules, name)
    vtrn.install_nki()
    vtrn.install_nki()
    import nki as installed
    import nki.isa
    import nki.language
    from nki.isa.constants import oob_mode
    from nki.typing import tensor

    assert installed is vtrn.nki and nki.language is nl and oob_mode is vtrn.nki.isa.oob_mode and tensor[1, 2] is tensor


def test_install_never_hides_another_nki(monkeypatch):
    for name in [name for name in sys.modules if name == "nki" or name.startswith("nki.")]:
        monkeypatch.delitem(sys.modules, name)
    foreign = types.ModuleType("nki")
    monkeypatch.setitem(sys.modules, "nki", foreign)
    with pytest.raises(ImportError, match="installed already"):
        vtrn.install_nki()
    assert sys.modules["nki"] is foreign
    vtrn.install_nki(replace=True)
    assert sys.modules["nki"] is vtrn.nki


SCRIPT = """
    import sys
    import numpy as np
    import nki, nki.isa as nisa, nki.language as nl

    @nki.jit
    def double(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        t = nl.load(x)
        nl.store(out, nl.add(t, t))
        print("target", nisa.get_nc_version().name)
        return out

    def test_double():
        x = np.ones((4, 4), np.float32)
        assert (double(x) == 2).all()

    if __name__ == "__main__":
        test_double()
        print("arguments", sys.argv[1:])
"""


def vtrn_module(*arguments, cwd):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.run(
        [sys.executable, "-m", "vtrn", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_scripts_and_modules_run_unmodified(tmp_path):
    script = tmp_path / "test_script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = vtrn_module("run", "--target", "trn2", str(script), "--flag", "x", cwd=tmp_path)
    assert done.returncode == 0 and "target gen3" in done.stdout and "arguments ['--flag', 'x']" in done.stdout, done.stderr
    done = vtrn_module("--target", "trn1", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_script.py", cwd=tmp_path)
    assert done.returncode == 0 and "target gen2" in done.stdout and "1 passed" in done.stdout, done.stdout + done.stderr
    assert vtrn_module("run", "nothing.py", cwd=tmp_path).returncode != 0


def test_counters_of_the_last_run():
    def kernel(x):
        nl.load(x)

    vtrn.run(kernel, np.zeros((128, 64), np.float32))
    counters = vtrn.last_counters()
    assert counters["instructions"] == counters["dma_instructions"] == 1 and counters["hbm_read_bytes"] == 128 * 64 * 4


@pytest.mark.parametrize(
    "words, message",
    [
        (["missing.py"], "missing.py: No such file or directory"),
        ([""], ": No such file or directory"),
        (["."], ".: Is a directory without a __main__.py"),
        (["a\nb"], "a\nb: No such file or directory"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
        (["-m", "no.such.module"], "there is no module no.such.module"),
        (["-m", ".x"], "there is no module .x"),
    ],
)
def test_scripts_that_are_not_there(words, message, tmp_path):
    done = vtrn_module("run", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"vtrn run: {message}\n")


@pytest.mark.parametrize("how", ["script", "module", "folder"])
def test_errors_of_scripts_look_as_if_python_ran_them(how, tmp_path):
    folder = tmp_path / "some"
    folder.mkdir()
    script = folder / "__main__.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, nki, nki.language as nl

        @nki.jit
        def kernel(x):
            nl.ndarray((200, 2), nl.float32)

        try:
            kernel(np.zeros((1, 1), np.float32))
        except Exception as error:
            raise KeyError("mine") from error
        """)
    )
    what = {"script": [str(script)], "module": ["-m", "some"], "folder": [str(folder)]}[how]
    done = vtrn_module("run", "--target", "trn2", *what, cwd=tmp_path)
    files = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert done.returncode == 1 and len(files) == 3 and all(name.endswith("__main__.py") for name in files), done.stderr
    assert "NkiValidationError: __main__.py:6 nl.ndarray: tensor (unnamed): partition dimension 200 > 128" in done.stderr
    assert done.stderr.endswith("KeyError: 'mine'\n")


def test_stand_ins_are_found_as_packages_and_are_installed_once():
    code = """
import importlib.util, sys
from vtrn import standins
standins.install()
first = {name: module for name, module in sys.modules.items() if name.startswith(("torch_xla", "torch_neuronx"))}
standins.install()
assert first and all(sys.modules[name] is module and importlib.util.find_spec(name) for name, module in first.items())
import torch_neuronx
torch_neuronx.nki_jit(lambda x: x)
try:
    torch_neuronx.trace
except AttributeError as error:
    assert "stand-in for torch_neuronx" in str(error)
else:
    raise AssertionError("no error")
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
