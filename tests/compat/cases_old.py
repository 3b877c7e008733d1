"""Other kernels of the old namespace (neuronxcc.nki): perceptrons, attention, linear attention, gates of quantum circuits."""

import numpy as np
from checkout import case, normal, softmax

FUSION, LINEAR, QUANTUM = (
    "allenkchau/trainium-kernel-fusion",
    "Willy-Chan/trainium-linear-attention",
    "RichardYin21/Trainium-Quantum-Simulator",
)


def _erf(x):
    import math

    return np.vectorize(math.erf)(x)


def _perceptron_data():
    return normal(1, 256, 256, scale=0.5), normal(2, 256, 1024, scale=0.1), normal(3, 1024)


def _gelu(x, w, bias):
    y = x.astype(np.float64) @ w + bias
    return y, y * (1 + _erf(y / np.sqrt(2))) / 2


@case(FUSION, "kernels/baseline/mlp_gemm.py", kernels=2)
def perceptron_in_two_kernels(at):
    """product with bias, GELU"""
    module, data = at.module(), _perceptron_data()
    x, w, bias = data
    product, want = _gelu(*data)
    at.close(module.gemm_kernel(x.T.copy(), w, bias.reshape(1, -1)), product, 1e-5, 1e-5)
    at.close(module.mlp_baseline(*data), want, 1e-4, 1e-4)


@case(FUSION, "kernels/fused/mlp.py", kernels=2)
def perceptron_in_one_kernel(at):
    """product with bias and GELU in one: the engine's GELU, and by a sigmoid"""
    module, data = at.module(), _perceptron_data()
    y, want = _gelu(*data)
    at.close(module.mlp_fused(*data), want, 1e-4, 1e-4)
    by_tanh = y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))) / 2
    at.close(module.mlp_fused(*data, mode="taylor"), by_tanh, 1e-4, 1e-4)


@case(FUSION, "kernels/baseline/softmax.py")
def softmax_of_rows(at):
    """softmax of rows"""
    x = normal(1, 256, 1024, scale=3)
    at.close(at.module().softmax_kernel(x), softmax(x.astype(np.float64)), 1e-5, 1e-7)


def _attention(name):
    def check(at):
        q, k, v = (normal(seed, 128, 1024, scale=0.3) for seed in (1, 2, 3))
        want = softmax(q.T.astype(np.float64) @ k) @ v.T
        at.close(getattr(at.module(), name)(q, k, v), want, 1e-4, 1e-4)

    check.__name__, check.__doc__ = name, name.replace("_", ", ").replace("fused", "in one pass").replace("baseline", "through HBM")
    return check


case(FUSION, "kernels/baseline/attention.py")(_attention("baseline_attention"))
case(FUSION, "kernels/fused/attention.py")(_attention("fused_attention"))


def _heads(scale=1.0):
    return (normal(seed, 3, 256, 128, scale=scale) for seed in (1, 2, 3))


@case(LINEAR, "kernels/nki_attention.py")
def polynomial_attention(at):
    """causal attention with 1 + x + x^2 / 2 for the exponential, a grid of heads"""
    kernel, _, _ = at.module().get_based_attn_kernel(256, 128, 3)
    q, k, v = _heads(0.3)
    numerator, denominator = kernel(q, k, v)
    score = np.einsum("htd,hsd->hts", q.astype(np.float64), k)
    poly = np.tril(1 + score + score**2 / 2)
    at.close(numerator, poly @ v, 1e-4, 1e-4)
    at.close(denominator[..., 0], poly.sum(-1), 1e-4, 1e-4)


@case(LINEAR, "kernels/nki_attention_chunked.py")
def linear_attention_by_chunks(at):
    """causal linear attention with a recurrent state in HBM"""
    kernel, _, _, _ = at.module().get_chunked_attn_kernel(256, 256, 64, 2)
    q, k = (normal(seed, 2, 256, 256, scale=0.1) for seed in (1, 2))
    v = normal(3, 2, 256, 64)
    want = np.tril(np.einsum("htd,hsd->hts", q.astype(np.float64), k)) @ v
    at.close(kernel(q, k, v), want, 1e-4, 1e-4)


@case(LINEAR, "kernels/nki_attention_sliding.py")
def attention_in_a_window(at):
    """softmax attention in a sliding window, a grid of heads"""
    kernel, _, _, rows, mask = at.module().get_sliding_window_kernel(256, 128, 3)
    q, k, v = _heads(0.3)
    front = ((0, 0), (rows - 256, 0), (0, 0))
    score = np.einsum("htd,hsd->hts", q.astype(np.float64), k)
    t, s = np.indices((256, 256))
    want = softmax(np.where((s <= t) & (s > t - 64), score, -1e30)) @ v
    at.close(kernel(q, np.pad(k, front), np.pad(v, front), mask), want, 1e-4, 1e-4)


@case(QUANTUM, "nki_gate_apply.py")
def quantum_gate(at):
    """a gate of 5 qubits on states, complex product by three real ones"""
    gate, state = normal(1, 2, 32, 32), normal(2, 2, 32, 1024)
    want = (gate[0] + 1j * gate[1]).astype(np.complex128) @ (state[0] + 1j * state[1])
    got = np.asarray(at.module().nki_gate_apply(gate, state), np.float64)
    at.close(got, np.stack([want.real, want.imag]), 1e-4, 1e-4)
