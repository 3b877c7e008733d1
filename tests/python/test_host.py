"""The host around a run: interruption by the user, kernels in several Python threads."""

import _thread
import threading
import time

import numpy as np
import pytest
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import run

X = np.zeros((1, 1), np.float32)


def forever(x):
    cell, reg = nl.zeros((1, 1), nl.int32), nisa.register_alloc(1)

    def body(r):
        nisa.memset(cell, 1)
        nisa.register_load(r, cell)
        return r

    nl.while_loop(reg, body)


@pytest.mark.parametrize("how", ["kernel", "program"])
def test_the_user_can_interrupt_a_run(how):
    program = vtrn.trace(forever, X, target="trn2")
    timer = threading.Timer(0.3, _thread.interrupt_main)
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(forever, X) if how == "kernel" else program.run(X)
    assert time.monotonic() - start < 10


def test_kernels_run_in_several_threads_at_once():
    def kernel(x):
        out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.load(x)
        for _ in range(200):
            nisa.tensor_scalar(t, t, nl.add, 1.0)
        nl.store(out, t)
        return out

    right = []

    def work(start):
        for _ in range(10):
            right.append((run(kernel, np.full((64, 64), start, np.float32)) == start + 200).all())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 40 and all(right)
