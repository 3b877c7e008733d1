"""Runs the public kernels of the new `nki` namespace unmodified, from checkouts that the caller names, on every target where they
are legal, and says whether their results equal their references. Nothing of them is part of this project.

    vtrn run is called as a user calls it; the Markdown table goes into docs/compatibility.md.

    public.py --vtrn build/src/cli/vtrn [--neuron-sdk PATH] [--nki-samples PATH] [--markdown FILE] [NAME...]
"""

import argparse
import dataclasses
import importlib.util
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ALL = ("trn1", "inf2", "trn2", "trn3")


@dataclasses.dataclass
class Case:
    repository: str  # "aws-neuron-sdk" or "nki-samples"
    path: str
    kernels: str
    reference: str
    words: tuple = ()  # that the output must have, as often as given
    never: tuple = ("differ", "False")  # scripts that find a difference often say so and still exit with 0
    arguments: tuple = ()
    drive: str = ""  # the script has no reference of its own: drive.py NAME compares with NumPy
    targets: tuple = ALL
    needs: str = ""  # a Python package
    refuses: str = ""  # the script is meant to be refused with these words


SDK = "aws-neuron-sdk"
EXAMPLES = "nki/examples/"
CASES = (
    Case(
        SDK,
        EXAMPLES + "matrix_multiplication/matrix_multiplication_torch.py",
        "matmul basic, tiled, hoist_load, block_free_dimension, fully_optimized",
        "its own, torch.matmul",
        ("NKI and Torch match",) * 5,
    ),
    Case(SDK, EXAMPLES + "average_pool2d/average_pool2d_torch.py", "average_pool2d", "its own, PyTorch", ("NKI and Torch match",)),
    Case(
        SDK,
        EXAMPLES + "average_pool2d/average_pool2d_jax.py",
        "average_pool2d",
        "its own, JAX",
        ("NKI and JAX match",),
        needs="jax",
    ),
    Case(SDK, EXAMPLES + "transpose2d/transpose2d_torch.py", "transpose2d", "its own, PyTorch", ("NKI and PyTorch match",)),
    Case(SDK, EXAMPLES + "transpose2d/transpose2d_jax.py", "transpose2d", "its own, JAX", ("NKI and JAX match",), needs="jax"),
    Case(SDK, EXAMPLES + "fused_mamba/mamba_torch.py", "mamba v1", "its own, PyTorch", ("NKI and Torch match",)),
    Case(
        SDK,
        EXAMPLES + "fused_mamba/mamba_nki_kernels.py",
        "mamba v1, v2, v3",
        "its own: v2 and v3 equal v1 bit for bit",
        ("matches? True",) * 2,
    ),
    Case(SDK, EXAMPLES + "simulate/nki_simulate_example.py", "simulate example", "its own, NumPy"),
    Case(
        SDK, EXAMPLES + "tensor_addition/tensor_addition_nki_kernels.py", "tensor addition", "NumPy", ("match",), drive="addition"
    ),
    Case(SDK, EXAMPLES + "getting_started_torch.py", "getting started", "NumPy", ("match",), drive="start"),
    Case(SDK, EXAMPLES + "getting_started_baremetal.py", "getting started", "NumPy", ("match",), drive="start"),
    Case(SDK, EXAMPLES + "getting_started_jax.py", "getting started", "NumPy", ("match",), drive="start", needs="jax"),
    Case(SDK, EXAMPLES + "layout-pass.py", "exponential", "NumPy", ("match",), drive="exponential"),
    Case(
        SDK,
        EXAMPLES + "layout-violation.py",
        "exponential of 256 partitions",
        "must be refused",
        refuses="partition dimension 256 > 128",
    ),
    Case(SDK, EXAMPLES + "index-case-1.py", "even and odd columns", "NumPy", ("match",), drive="split"),
    Case(SDK, EXAMPLES + "index-case-3.py", "max-pool by access pattern", "NumPy", ("match",), drive="maxpool"),
    Case(
        "nki-samples",
        "src/nki_samples/tutorials/matrix_multiplication/matrix_multiplication_torch.py",
        "matmul basic, tiled, hoist_load, block_free_dimension, fully_optimized",
        "its own, torch.matmul",
        ("NKI and Torch match",) * 5,
    ),
    Case(
        "nki-samples",
        "src/nki_samples/tutorials/mxfp-matmul/mx_toplevel.py",
        "offline, on-device and strided MXFP4 and MXFP8 matmul",
        "its own, NumPy",
        ("np.allclose pass? True",) * 6,
        targets=("trn3",),
    ),
)


def run(case: Case, vtrn: pathlib.Path, checkout: pathlib.Path, target: str) -> tuple[str, float]:
    """("", seconds) when all is well, else what is wrong."""
    script = checkout / case.path
    command = [str(vtrn), "run", "--target", target]
    command += [str(HERE / "drive.py"), case.drive, str(script)] if case.drive else [str(script), *case.arguments]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=900)
    seconds = time.perf_counter() - start
    text = done.stdout + done.stderr
    if case.refuses:
        return ("" if done.returncode and case.refuses in text else f"not refused with: {case.refuses}"), seconds
    if done.returncode:
        return f"exit code {done.returncode}: {text.strip().splitlines()[-1] if text.strip() else ''}", seconds
    for word in set(case.words):
        if text.count(word) < case.words.count(word):
            return f'says "{word}" {text.count(word)} times of {case.words.count(word)}', seconds
    for word in case.never:
        if word in text:
            return f'says "{word}"', seconds
    return "", seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--vtrn", type=pathlib.Path, default="build/src/cli/vtrn")
    parser.add_argument("--neuron-sdk", type=pathlib.Path, help="checkout of aws-neuron-sdk")
    parser.add_argument("--nki-samples", type=pathlib.Path, help="checkout of nki-samples")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the table there")
    parser.add_argument("names", nargs="*", help="only cases whose path has one of these in it")
    options = parser.parse_args()
    checkouts = {SDK: options.neuron_sdk, "nki-samples": options.nki_samples}
    rows, failed, passed = [], 0, 0
    for case in CASES:
        checkout = checkouts[case.repository]
        if checkout is None or (options.names and not any(name in case.path for name in options.names)):
            continue
        if case.needs and importlib.util.find_spec(case.needs) is None:
            print(f"skipped (no {case.needs}): {case.path}", flush=True)
            continue
        cells = {}
        for target in case.targets:
            wrong, seconds = run(case, options.vtrn.resolve(), checkout.resolve(), target)
            print(f"{'FAILED' if wrong else 'ok':7} {target} {case.path} {seconds:.1f} s {wrong}", flush=True)
            cells[target] = "refused" if case.refuses and not wrong else "no" if wrong else "yes"
            failed, passed = failed + bool(wrong), passed + (not wrong)
        script = pathlib.Path(case.path).name
        command = f"drive.py {case.drive} .../{script}" if case.drive else f"{script}"
        marks = " | ".join(cells.get(target, "not legal") for target in ALL)
        rows.append(
            f"| {case.repository} `{case.path.removeprefix(EXAMPLES)}` | {case.kernels} | {case.reference} "
            f"| `vtrn run {command}` | {marks} |"
        )
    if options.markdown:
        head = "| script | kernels | reference | command | " + " | ".join(ALL) + " |\n|---|---|---|---|" + "---|" * len(ALL)
        options.markdown.write_text("\n".join([head, *rows]) + "\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
