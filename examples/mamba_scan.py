"""The selective scan of a Mamba layer: for every channel and state h[t] = exp(delta[t] A) h[t-1] + delta[t] u[t] B[t], and
y[t] = sum over states of C[t] h[t]. Channels lie on the partitions, time on the free axis, and one scan instruction walks
the whole sequence.

    vtrn run examples/mamba_scan.py
"""

import common
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def load_to_all(row_of, length):
    """One row of HBM [1, length] in every partition."""
    tile = nl.ndarray((128, length), dtype=row_of.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=row_of.broadcast(0, 128))
    return tile


@nki.jit
def selective_scan(delta, u, a, b, c):
    """delta, u [channels, time]; a [channels, states]; b, c [states, time]; returns y [channels, time]."""
    channels, length = delta.shape
    states = a.shape[1]
    y = nl.ndarray((channels, length), dtype=delta.dtype, buffer=nl.shared_hbm)

    for first in range(0, channels, 128):
        block = slice(first, first + 128)
        delta_tile, u_tile, delta_u, sum_tile, decay, drive, h, part = (
            nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf) for _ in range(8)
        )
        a_tile = nl.ndarray((128, states), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=delta_tile, src=delta[block, :])
        nisa.dma_copy(dst=u_tile, src=u[block, :])
        nisa.dma_copy(dst=a_tile, src=a[block, :])
        nisa.tensor_tensor(dst=delta_u, data1=delta_tile, data2=u_tile, op=nl.multiply)
        nisa.memset(dst=sum_tile, value=0.0)
        for state in range(states):
            b_tile = load_to_all(b[state : state + 1, :], length)
            c_tile = load_to_all(c[state : state + 1, :], length)
            nisa.activation(dst=decay, op=nl.exp, data=delta_tile, scale=a_tile[:, state : state + 1])
            nisa.tensor_tensor(dst=drive, data1=delta_u, data2=b_tile, op=nl.multiply)
            nisa.tensor_tensor_scan(dst=h, data0=decay, data1=drive, initial=0.0, op0=nl.multiply, op1=nl.add)
            nisa.tensor_tensor(dst=part, data1=h, data2=c_tile, op=nl.multiply)
            nisa.tensor_tensor(dst=sum_tile, data1=sum_tile, data2=part, op=nl.add)
        nisa.dma_copy(dst=y[block, :], src=sum_tile)
    return y


def reference_scan(delta, u, a, b, c):
    h = np.zeros(a.shape, np.float32)
    y = np.empty_like(delta)
    for t in range(delta.shape[1]):
        h = np.exp(delta[:, t : t + 1] * a) * h + (delta[:, t] * u[:, t])[:, None] * b[:, t]
        y[:, t] = h @ c[:, t]
    return y


def torch_scan(torch, delta, u, a, b, c):
    h = torch.zeros(a.shape)
    y = torch.empty(delta.shape)
    for t in range(delta.shape[1]):
        h = torch.exp(delta[:, t : t + 1] * a) * h + (delta[:, t] * u[:, t])[:, None] * b[:, t]
        y[:, t] = h @ c[:, t]
    return y


def run(channels=512, length=2048, states=16) -> common.Outcome:
    rng = np.random.default_rng(3)
    delta = rng.uniform(0.001, 0.1, (channels, length)).astype(np.float32)
    u = rng.standard_normal((channels, length), np.float32)
    a = -np.tile(np.arange(1, states + 1, dtype=np.float32), (channels, 1))
    b, c = (rng.standard_normal((states, length), np.float32) for _ in range(2))
    reference = reference_scan(delta, u, a, b, c)

    native, native_call = "numpy loop", lambda: reference_scan(delta, u, a, b, c)
    if common.HAS_TORCH:
        import torch

        tensors = [torch.from_numpy(x) for x in (delta, u, a, b, c)]
        native, native_call = "torch loop", lambda: torch_scan(torch, *tensors)
    size = f"{channels} channels x {states} states x {length}"
    return common.outcome(
        "Mamba scan", size, lambda: selective_scan(delta, u, a, b, c), reference, 1e-4, native, native_call
    )


if __name__ == "__main__":
    common.main(run)
