"""The examples at small sizes agree with their references, and their recorded programs give the same bits from the command line."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import vtrn

ROOT = pathlib.Path(__file__).resolve().parents[2]

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import {module}
result = {module}.run({arguments})
print(result)
assert result.good
"""

# Records a kernel, saves its arguments, runs it here, then by the command, and compares bytes.
REPLAY = """
import pathlib, subprocess, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import ml_dtypes
import vtrn
import {module} as example

rng = np.random.default_rng(5)
bf16 = lambda *shape: rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)
f32 = lambda *shape: rng.standard_normal(shape, np.float32)
arguments = [{arguments}]
program = vtrn.trace(example.{kernel}, *arguments)
program.save("kernel.vtrn")
assert vtrn.Program.parse(program.text()).text() == program.text()
result = np.ascontiguousarray(vtrn.run(example.{kernel}, *arguments))
command = [sys.argv[2], "run", "kernel.vtrn", "--output", "out"]
for i, array in enumerate(arguments):
    np.save(f"{{i}}.npy", array)
    command += ["--input", f"{{i}}={{i}}.npy"]
subprocess.run(command, check=True)
again = np.load(next(pathlib.Path("out").iterdir()))
assert result.tobytes() == again.tobytes() and not np.isnan(result.astype(np.float32)).any()
"""


def run_script(text, folder, *arguments):
    path = folder / "script.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "vtrn", "run", str(path), str(ROOT / "examples"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "module, arguments",
    [
        ("matmul_bf16", "size=512"),
        ("attention", "heads=1, length=1024"),
        ("matmul_mxfp8", "size=512"),
        ("mamba_scan", "channels=128, length=300, states=3"),
    ],
)
def test_examples_agree_with_their_references(module, arguments, tmp_path):
    run_script(RUN.format(module=module, arguments=arguments), tmp_path)


def vtrn_command():
    """The command of the build that the extension comes from, or the one on the path."""
    built = pathlib.Path(vtrn._vtrn.__file__).resolve().parents[2] / "src/cli/vtrn"
    return str(built) if os.access(built, os.X_OK) else shutil.which("vtrn")


@pytest.mark.skipif(vtrn_command() is None, reason="the command vtrn is not built")
@pytest.mark.parametrize(
    "module, kernel, arguments",
    [
        ("matmul_bf16", "matmul", "bf16(256, 128), bf16(256, 512)"),
        ("attention", "attention", "bf16(1, 128, 512), bf16(1, 128, 512), bf16(1, 512, 128)"),
        ("matmul_mxfp8", "matmul_mxfp8", "bf16(512, 128), bf16(512, 512)"),
        ("mamba_scan", "selective_scan", "abs(f32(128, 64)), f32(128, 64), -abs(f32(128, 2)), f32(2, 64), f32(2, 64)"),
    ],
)
def test_replay_gives_the_same_bits(module, kernel, arguments, tmp_path):
    run_script(REPLAY.format(module=module, kernel=kernel, arguments=arguments), tmp_path, vtrn_command())
