"""Differential test: random kernels through the Python front end equal model.py bit for bit.

``VTRN_FUZZ_SEEDS=first:count`` chooses the seeds (default 0:200). A failure prints the seed, the shortest prefix of the plan
that still differs, and where.
"""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))
import generate  # noqa: E402
import vtrn.nki as nki  # noqa: E402
import vtrn.nki.isa as nisa  # noqa: E402
import vtrn.nki.language as nl  # noqa: E402

FIRST, COUNT = (int(v) for v in os.environ.get("VTRN_FUZZ_SEEDS", "0:200").split(":"))


def differs(seed, length):
    plan = generate.Generator(seed, length)
    return plan, generate.difference(plan, generate.run(plan, nki, nl, nisa))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_kernel_equals_the_model(seed):
    with np.errstate(all="ignore"):
        plan, text = differs(seed, 24)
        if text is None:
            return
        for length in range(1, 25):  # the same seed with a smaller length is a prefix of the plan
            plan, shorter = differs(seed, length)
            if shorter is not None:
                text = shorter
                break
    pytest.fail(
        f"seed {seed}: {text}\nlast instruction of the shortest plan: {plan.calls[-1]!r}\nplan:\n"
        + "\n".join(f"  {call!r}" for call in plan.calls)
    )
