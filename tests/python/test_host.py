"""The host around a run: interruption by the user, kernels in several Python threads."""

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest
import vtrn
import vtrn.nki as nki
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import run
from vtrn import _vtrn

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


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # wakes a thread that waits, as Ctrl-C does


def on_core(core, body):
    """A kernel for two cores of which one does something."""

    def kernel(x):
        if nl.program_id(0) == core:
            body(x)

    return nki.jit(kernel)[2]


def append_forever(x):
    while True:
        nisa.memset(nl.ndarray((1, 1), nl.float32), 0.0)


def append_later(x):
    """The interrupt comes while no instruction is appended; the run is over when one is."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass
    nisa.memset(nl.ndarray((1, 1), nl.float32), 0.0)


@pytest.mark.parametrize("core", [0, 1])
@pytest.mark.parametrize("body", [forever, append_forever, append_later])
def test_the_user_can_interrupt_two_cores(core, body):
    timer = threading.Timer(0.3, interrupt)
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(on_core(core, body), X)
    while any(thread.name == "vtrn core 1" for thread in threading.enumerate()):
        assert time.monotonic() - start < 10
        time.sleep(0.01)


def test_a_session_that_is_traced_is_not_closed_under_its_kernel():
    session = _vtrn.Session("trn2")

    def kernel():
        t = nl.ndarray((2, 2), nl.float32)
        session.close()
        assert t.shape == (2, 2)
        nisa.memset(nl.ndarray((2, 2), nl.float32), 0.0)

    with pytest.raises(vtrn.VtrnError, match="the run has stopped"):
        session.trace(0, kernel)
    session.close()


def test_forked_processes_run_kernels():
    """Before, in and between runs of the parent, whose threads the child does not have."""
    array = np.ones((128, 512), np.float32)

    def add(x):
        out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.load(x)
        nisa.tensor_scalar(t, t, nl.add, 1.0)
        nl.store(out, t)
        return out

    for _ in range(3):
        assert (run(add, array, threads=4) == 2).all()
        child = os.fork()
        if child == 0:
            os._exit(0 if (run(add, array, threads=4) == 2).all() else 1)
        assert os.waitpid(child, 0)[1] == 0


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
