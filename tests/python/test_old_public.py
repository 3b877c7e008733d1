"""AWS's own kernels of the old namespace, unmodified: its tests of the functions, the examples of SDK 2.26, nki-samples.

VTRN_PUBLIC names a folder that holds clones, with their history, of aws-neuron/aws-neuron-sdk and aws-neuron/nki-samples; without
it the tests skip. The versions are taken from the history. Nothing of the clones is part of this project.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import vtrn
from vtrn.neuronxcc import nki
from vtrn.neuronxcc.nki import isa as nisa
from vtrn.neuronxcc.nki import language as nl

PUBLIC = pathlib.Path(os.environ.get("VTRN_PUBLIC", "/nonexistent"))
COMPAT = pathlib.Path(__file__).resolve().parents[1] / "compat"
# (clone, commit, folder): SDK 2.26 is the last in which all is of the old namespace; so is nki-samples before it dropped its tests
FUNCTIONS_NOW = ("aws-neuron-sdk", "81ce03ae", "nki/test")
FUNCTIONS = ("aws-neuron-sdk", "631eadc9", "general/nki/test")
EXAMPLES = ("aws-neuron-sdk", "631eadc9", "general/nki/examples")
SAMPLES = ("nki-samples", "c4b806e^", ".")

# Tests of the functions that cannot hold: what they ask of a chip it does not do.
NOT_HELD = {
    "test_nki_isa_activation.py::TestNkiIsaExamplesActivation::test_activation": "compares a bf16 result with fp32 bounds",
    "test_nki_isa_dma_copy.py::TestNkiIsaExamplesTensorCopy::test_indirect_load_oob_err_negative": "wants NumPy's error text",
    "test_nki_isa_dma_copy.py::TestNkiIsaExamplesTensorCopy::test_indirect_store_oob_err_negative": "wants NumPy's error text",
}
# Example scripts of SDK 2.26, and what they print when the kernel is right
SCRIPTS = {
    "attention/attention_kernels.py": "",
    "average_pool2d/average_pool2d_nki_kernels.py": "NKI and NumPy match",
    "average_pool2d/average_pool2d_torch.py": "NKI and Torch match",
    "fused_mamba/mamba_nki_kernels.py": "mamba v3 matches? True",
    "fused_mamba/mamba_torch.py": "NKI and Torch match",
    "getting_started_baremetal.py": "",
    "getting_started_torch.py": "2., 2., 2.",
    "index-case-1.py": "",
    "index-case-3.py": "",
    "layernorm/layernorm_nki_kernel.py": "LayerNorm V1 and V2 matches? True",
    "layout-dynamic-loop.py": "",
    "layout-loop.py": "",
    "layout-pass.py": "2.7188, 2.7188",
    "matrix_multiplication/matrix_multiplication_nki_kernels.py": "Latency",
    "matrix_multiplication/matrix_multiplication_torch.py": "NKI and Torch match",
    "mm-nisa-spmd.py": "128., 128.",
    "mm-nl-spmd.py": "128., 128.",
    "prof-kernel.py": "",
    "prof-kernel-benchmark.py": "",
    "prof-kernel-profile.py": "",
    "rmsnorm/rmsnorm_nki_kernels.py": "NKI and NumPy match",
    "rmsnorm/rmsnorm_torch.py": "NKI and Torch match",
    "sd_attention/sd_attention_nki_kernels.py": "SD attention matches CPU reference? True",
    "sd_attention/sd_attention_torch.py": "NKI and Torch match",
    "tensor_addition/spmd_multiple_nc_tensor_addition_nki_kernels.py": "NKI and NumPy match",
    "tensor_addition/spmd_multiple_nc_tensor_addition_torch.py": "NKI and Torch match",
    "tensor_addition/spmd_tensor_addition_nki_kernels.py": "NKI and NumPy match",
    "tensor_addition/spmd_tensor_addition_torch.py": "NKI and Torch match",
    "transpose2d/transpose2d_nki_kernels.py": "NKI and NumPy match",
    "transpose2d/transpose2d_torch.py": "NKI and PyTorch match",
}
CONTRIBUTED = {
    "interpolate_bilinear_fwd.py": "Is close:  True",
    "interpolate_trilinear_fwd.py": "Is close:  True",
    "maxpooling.py": "Is close? True",
    "matmul.py": "Is close? True",
    "pipelined_attention.py": "",
}
# nki-samples' own tests that run without a device: (file, how many)
UNITS = {
    "test_SD_attention_small_head.py": 2,
    "test_adaptive_avg_pool2d.py": 16,
    "test_allocated_SD_attention_small_head.py": 3,
    "test_double_row_matmul.py": 3,
    "test_flash_attn_bwd.py": 16,
    "test_flash_attn_fwd.py": 5,
    "test_resize_nearest.py": 3,
    "test_rmsnorm_qkv.py": 4,
    "test_select_and_scatter.py": 2,
}


def unpack(version, folder):
    """The version of the clone, or a skip."""
    clone, commit, path = version
    into = folder.joinpath(clone, re.sub(r"\W", "_", f"{commit}{path}"))
    if not into.is_dir():
        command = ["git", "-C", str(PUBLIC / clone), "archive", commit, path]
        done = subprocess.run(command, capture_output=True, check=False) if (PUBLIC / clone).is_dir() else None
        if done is None or done.returncode:
            pytest.skip(f"VTRN_PUBLIC has no clone of {clone} with {commit}")
        into.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(into)], input=done.stdout, check=True)
    return into / path


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


def vtrn_run(workdir, *arguments, more=()):
    path = os.pathsep.join([*map(str, more), *sys.path])
    environment = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", VTRN_TARGET="trn2")
    command = [sys.executable, "-m", "vtrn", "run", "--target", "trn2", *arguments]
    return subprocess.run(command, cwd=workdir, env=environment, capture_output=True, text=True, check=False)


def passed(done):
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short")


@pytest.mark.parametrize("version, count", [(FUNCTIONS_NOW, 81), (FUNCTIONS, 71)], ids=["now", "sdk-2.26"])
def test_functions(version, count, shared):
    leave_out = [f"--deselect={name}" for name in NOT_HELD]
    assert passed(vtrn_run(unpack(version, shared), *PYTEST, *leave_out, ".")) == count


def test_what_the_tests_left_out_do():
    """A result of bf16 is NumPy's, rounded; an index that leaves its tensor is named."""

    @nki.jit
    def squares(b, c):
        out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.activation(op=np.square, data=nl.load(b), bias=nl.load(c), scale=2.0, dtype=nl.bfloat16))
        return out

    @nki.jit
    def gather(x):
        rows = nisa.iota(3 * nl.arange(64)[:, None], dtype=np.int32)
        tile = nisa.memset((64, 512), value=-1, dtype=x.dtype)
        nisa.dma_copy(src=x[rows, nl.mgrid[0:64, 0:512].x], dst=tile, oob_mode=nisa.oob_mode.error)
        return tile

    rng = np.random.default_rng(0)
    b, c = (rng.random(shape, dtype=np.float32) * 100 for shape in ((128, 512), (128, 1)))
    np.testing.assert_array_equal(squares(b, c), np.square(b * 2 + c).astype(nl.bfloat16).astype(np.float32))
    with pytest.raises(vtrn.Fault, match=r"index\[43\] = 129 is outside 0..127 of tensor x \(oob_mode.error\)"):
        gather(rng.random((128, 512), dtype=np.float32))


@pytest.mark.parametrize("script", SCRIPTS)
def test_examples(script, shared):
    if "torch" in script and not importlib.util.find_spec("torch"):
        pytest.skip("needs PyTorch")
    file = unpack(EXAMPLES, shared) / script
    done = vtrn_run(file.parent, file.name)
    assert done.returncode == 0, done.stderr[-2000:]
    assert SCRIPTS[script] in done.stdout and "do not match" not in done.stdout and "differ" not in done.stdout


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 8, "8a", 9, 10, 11])
def test_steps_of_the_attention_tutorial(version, shared, tmp_path):
    """Its script runs the first step; each is called here as the script does it: with and without a benchmark."""
    folder = unpack(SAMPLES, shared) / "src/nki_samples/tutorials/attention_fwd_performance"
    for mode in ("accuracy", "benchmark") if version != 10 else ("accuracy",):  # expected to fail there
        call = f"import test_attention as t\nt.test_attn_tutorial('{mode}', t.attn_fwd_v{version})\n"
        (tmp_path / "step.py").write_text(call, encoding="utf-8")
        done = vtrn_run(tmp_path, "step.py", more=(folder,))
        assert done.returncode == 0, done.stderr[-2000:]
        assert mode == "accuracy" or re.search(rf"attn_fwd_v{version} : [\d.]+ usec", done.stdout)


TUTORIALS = {
    "average_pool2d/average_pool2d_nki_kernels.py": "NKI and NumPy match",
    "average_pool2d/average_pool2d_torch.py": "NKI and Torch match",
    "fused_mamba/mamba_nki_kernels.py": "mamba v3 matches? True",
    "fused_mamba/mamba_torch.py": "NKI and Torch match",
    "softmax/softmax_torch.py": "",
    "tensor_addition/spmd_multiple_nc_tensor_addition_nki_kernels.py": "NKI and NumPy match",
    "tensor_addition/spmd_multiple_nc_tensor_addition_torch.py": "NKI and Torch match",
    "tensor_addition/spmd_tensor_addition_nki_kernels.py": "NKI and NumPy match",
    "tensor_addition/spmd_tensor_addition_torch.py": "NKI and Torch match",
    "tensor_addition/tensor_addition_nki_kernels.py": "NKI and NumPy match",
    "tensor_addition/tensor_addition_torch.py": "NKI and Torch match",
    "transpose2d/transpose2d_nki_kernels.py": "NKI and NumPy match",
    "transpose2d/transpose2d_torch.py": "NKI and PyTorch match",
}


@pytest.mark.parametrize("script", TUTORIALS)
def test_tutorials_of_the_samples(script, shared):
    if "torch" in script and not importlib.util.find_spec("torch"):
        pytest.skip("needs PyTorch")
    file = unpack(SAMPLES, shared) / "src/nki_samples/tutorials" / script
    done = vtrn_run(file.parent, file.name)
    assert done.returncode == 0, done.stderr[-2000:]
    assert TUTORIALS[script] in done.stdout and "do not match" not in done.stdout and "differ" not in done.stdout


@pytest.mark.parametrize("script", CONTRIBUTED)
def test_contributed_samples(script, shared):
    done = vtrn_run(unpack(SAMPLES, shared) / "contributed", script)
    assert done.returncode == 0, done.stderr[-2000:]
    assert CONTRIBUTED[script] in done.stdout and "False" not in done.stdout


@pytest.mark.parametrize("file", UNITS)
def test_units_of_the_samples(file, shared):
    root = unpack(SAMPLES, shared)
    done = vtrn_run(root / "test/unit", *PYTEST, "-p", "device", "--simulation-only", file, more=(root / "src", COMPAT))
    assert passed(done) == UNITS[file]
