"""Kernels of public checkouts, unmodified, against the references that stand beside them.

VTRN_PUBLIC names a folder that holds checkouts of aws-neuron/aws-neuron-sdk and aws-neuron/nki-samples; without it the tests
skip. Nothing of the checkouts is part of this project.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import vtrn
from helpers import TARGETS, random_array

PUBLIC = pathlib.Path(os.environ.get("VTRN_PUBLIC", "/nonexistent"))
EXAMPLES = PUBLIC / "aws-neuron-sdk/nki/examples"
TUTORIALS = PUBLIC / "nki-samples/src/nki_samples/tutorials"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="VTRN_PUBLIC names no folder with the public checkouts")

# Scripts that check themselves: (path, what they print when the kernel is right, how often, targets where it is legal)
SCRIPTS = [
    (EXAMPLES / "getting_started_baremetal.py", "[2. 2. 2.]", 4, TARGETS),
    (EXAMPLES / "getting_started_torch.py", "2., 2., 2.", 4, TARGETS),
    (EXAMPLES / "simulate/nki_simulate_example.py", "", 0, TARGETS),
    (EXAMPLES / "transpose2d/transpose2d_nki_kernels.py", "NKI and NumPy match", 1, TARGETS),
    (EXAMPLES / "transpose2d/transpose2d_torch.py", "NKI and PyTorch match", 1, TARGETS),
    (EXAMPLES / "average_pool2d/average_pool2d_nki_kernels.py", "NKI and NumPy match", 1, TARGETS),
    (EXAMPLES / "average_pool2d/average_pool2d_torch.py", "NKI and Torch match", 1, TARGETS),
    (EXAMPLES / "fused_mamba/mamba_torch.py", "NKI and Torch match", 1, TARGETS),
    (EXAMPLES / "fused_mamba/mamba_nki_kernels.py", "matches? True", 2, TARGETS),
    (EXAMPLES / "matrix_multiplication/matrix_multiplication_torch.py", "NKI and Torch match", 5, TARGETS),
    (EXAMPLES / "layout-pass.py", "dtype=torch.bfloat16", 1, TARGETS),
    (EXAMPLES / "index-case-1.py", "dtype=torch.bfloat16", 1, TARGETS),
    (EXAMPLES / "index-case-3.py", "dtype=torch.bfloat16", 1, TARGETS),
    (TUTORIALS / "matrix_multiplication/matrix_multiplication_torch.py", "NKI and Torch match", 5, TARGETS),
    (TUTORIALS / "mxfp-matmul/mx_toplevel.py", "np.allclose pass? True", 6, ("trn3",)),
]
if importlib.util.find_spec("jax"):
    SCRIPTS += [
        (EXAMPLES / "getting_started_jax.py", "[2. 2. 2.]", 4, TARGETS),
        (EXAMPLES / "transpose2d/transpose2d_jax.py", "NKI and JAX match", 1, TARGETS),
        (EXAMPLES / "average_pool2d/average_pool2d_jax.py", "NKI and JAX match", 1, TARGETS),
    ]
CASES = [(script, words, count, target) for script, words, count, targets in SCRIPTS for target in targets]


def run_script(script, target, workdir):
    """Runs a script through links, because some write beside themselves."""
    for file in script.parent.glob("*.py"):
        (workdir / file.name).symlink_to(file)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-m", "vtrn", "run", "--target", target, script.name]
    return subprocess.run(command, cwd=workdir, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script, words, count, target", CASES, ids=[f"{c[0].stem}-{c[3]}" for c in CASES])
def test_scripts_of_the_checkouts(script, words, count, target, tmp_path):
    done = run_script(script, target, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not words or done.stdout.count(words) >= count, done.stdout[-2000:]
    assert "differ" not in done.stdout


def test_a_kernel_that_should_fail_says_why(tmp_path):
    done = run_script(EXAMPLES / "layout-violation.py", "trn2", tmp_path)
    assert done.returncode != 0 and "partition dimension 256 > 128" in done.stderr


def load_kernels(path):
    try:
        vtrn.install_nki()
        spec = importlib.util.spec_from_file_location(f"public_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        os.environ.pop("NEURON_PLATFORM_TARGET_OVERRIDE", None)  # one of the examples sets it
    return module


@pytest.mark.parametrize("target", TARGETS)
def test_tensor_addition(target):
    kernels = load_kernels(EXAMPLES / "tensor_addition/tensor_addition_nki_kernels.py")
    a, b = random_array(1, 256, 1024), random_array(2, 256, 1024)
    assert np.array_equal(vtrn.run(kernels.nki_tensor_add, a, b, target=target), a + b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_mamba_on_random_data(version, target):
    kernels = load_kernels(EXAMPLES / "fused_mamba/mamba_nki_kernels.py")
    batch, channels, steps, states = 1, 128, 512, 4
    delta, u = random_array(1, batch, channels, steps, low=0.0, high=0.5), random_array(2, batch, channels, steps)
    a = -random_array(3, channels, states, low=0.1, high=2.0)
    b, c = random_array(4, batch, states, steps), random_array(5, batch, states, steps)
    got = vtrn.run(getattr(kernels, f"mamba_{version}"), delta, u, a, b, c, target=target)
    h, want = np.zeros((channels, states)), np.zeros((channels, steps))
    for t in range(steps):
        d = delta[0, :, t, None].astype(np.float64)
        h = np.exp(d * a) * h + d * u[0, :, t, None] * b[0, :, t]
        want[:, t] = (h * c[0, :, t]).sum(1)
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_that_have_no_reference(target):
    """Scripts that only print: their kernels on random data, against NumPy."""
    x, y = random_array(1, 100, 77, dtype=np.float16), random_array(2, 100, 77, dtype=np.float16)
    for name in ("getting_started_torch", "getting_started_baremetal"):
        kernel = load_kernels(EXAMPLES / f"{name}.py").nki_tensor_add_kernel
        assert np.array_equal(vtrn.run(kernel, x, y, target=target), x + y)
    even, odd = vtrn.run(load_kernels(EXAMPLES / "index-case-1.py").tensor_split_kernel_, x, target=target)
    assert np.array_equal(even, x[:, ::2]) and np.array_equal(odd, x[:, 1::2])
    z = random_array(3, 64, 12, 18)
    pooled = vtrn.run(load_kernels(EXAMPLES / "index-case-3.py").tensor_maxpool_kernel_, z, 3, target=target)
    assert np.array_equal(pooled, z.reshape(64, 4, 3, 6, 3).max((2, 4)))
    w = random_array(4, 128, 512)
    result = vtrn.run(load_kernels(EXAMPLES / "layout-pass.py").tensor_exp_kernel_, w, target=target)
    np.testing.assert_allclose(result, np.exp(w), rtol=1e-6)
