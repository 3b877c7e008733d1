"""ucb-bar/autocomp: kernels that a search agent starts from (RMSNorm to FFT), each in a harness with its own inputs."""

import numpy as np
from checkout import as_float, bfloat16, case, normal, softmax, uniform

REPOSITORY = "ucb-bar/autocomp"
TUTORIAL, ADVANCED, INTERNAL = (f"harnesses/trn-{name}" for name in ("tutorial-nki2", "advanced-nki2", "internal"))


def autocomp(path, reference="NumPy", **more):
    return case(REPOSITORY, path, reference, **more)


def _torch(*arrays):
    import torch

    return [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]


@autocomp(f"{TUTORIAL}/0_rmsnorm_test.py")
def rmsnorm(at):
    a, g = normal(1, 300, 1024), uniform(2, 1024)
    x = a.astype(np.float64)
    at.close(at.module().ref(a, g), x / np.sqrt((x**2).mean(1, keepdims=True)) * g, 1e-5, 1e-5)


@autocomp(f"{TUTORIAL}/1_layernorm_test.py")
def layernorm(at):
    x, gamma, beta = normal(1, 256, 1536), uniform(2, 1536), normal(3, 1536)
    got = at.module().nki_layernorm_kernel_v2(x, 1e-5, gamma, beta)
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    at.close(got, want, 1e-4, 1e-4)


@autocomp(f"{TUTORIAL}/2_gemm_test.py")
def gemm(at):
    a, b = normal(1, 512, 256), normal(2, 512, 1024)
    want = bfloat16(a)[1].T @ bfloat16(b)[1]  # the kernel rounds its operands to bf16
    at.close(at.module().ref(a, b), want, 1e-4, 1e-4)


@autocomp(f"{TUTORIAL}/3_mamba_test.py")
def mamba(at):
    import torch

    module = at.module()
    batch, channels, steps, states = 1, 256, 512, 4
    delta, u = uniform(1, batch, channels, steps), normal(2, batch, channels, steps)
    a, b, c = -uniform(3, channels, states, low=0.1), normal(4, batch, states, steps), normal(5, batch, states, steps)
    got = module.mamba_v3(delta, u, a, *(module.prebroadcast(torch.from_numpy(x), 128).numpy() for x in (b, c)))
    h, want = np.zeros((channels, states)), np.zeros((batch, channels, steps))
    for t in range(steps):
        d = delta[0, :, t, None].astype(np.float64)
        h = np.exp(d * a) * h + d * u[0, :, t, None] * b[0, :, t]
        want[0, :, t] = (h * c[0, :, t]).sum(1)
    at.close(got, want, 1e-4, 1e-4)


@autocomp(f"{TUTORIAL}/4_attention_test.py")
def attention(at):
    (q, q0), (k, k0), (v, v0) = (bfloat16(uniform(seed, 128, 1024, low=-1)) for seed in (1, 2, 3))
    at.close(at.module().ref(q, k, v), softmax(q0.T @ k0) @ v0.T, 2e-2, 2e-2)


@autocomp(f"{TUTORIAL}/5_sdattention_test.py")
def attention_of_stable_diffusion(at):
    q, k, v = (normal(seed, 1024, 64) for seed in (1, 2, 3))
    at.close(at.module().ref(q, k, v), softmax(q @ k.T.astype(np.float64) / 8) @ v, 1e-4, 1e-4)


@autocomp(f"{ADVANCED}/0_cumsum_test.py")
def cumulative_sum(at):
    x = normal(1, 300, 5000)
    at.close(at.module().ref(x), np.cumsum(x.astype(np.float64), 1), 1e-4, 1e-3)


@autocomp(f"{ADVANCED}/1_transpose_test.py")
def transpose_of_the_middle(at):
    x = normal(1, 3, 256, 384)
    at.equal(at.module().ref(x, 1), x.transpose(0, 2, 1))


@autocomp(f"{ADVANCED}/2_maxpool_test.py")
def maxpool(at):
    x = normal(1, 400, 1100)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    at.equal(at.module().ref(x, 3), windows.max((2, 3)))


@autocomp(f"{ADVANCED}/3_rope_test.py")
def rope(at):
    x, cos, sin = normal(1, 128, 640), normal(2, 64, 640), normal(3, 64, 640)
    upper, lower = x[:64], x[64:]
    want = np.concatenate([upper * cos - lower * sin, lower * cos + upper * sin])
    at.close(at.module().ref(x, cos, sin), want, 1e-6, 1e-6)


@autocomp(f"{ADVANCED}/4_conv1d_test.py", "torch.conv2d")
def depthwise_conv1d(at):
    import torch

    image, taps = _torch(normal(1, 2, 256, 1, 700), normal(2, 256, 1, 1, 3))
    want = torch.nn.functional.conv2d(image, taps, padding=(0, 1), groups=256)
    at.close(at.module().ref(image, taps, padding=((0, 0), (1, 1))), want, 1e-5, 1e-5)


@autocomp(f"{ADVANCED}/5_conv2d_test.py", "torch.conv2d")
def conv2d(at):
    import torch

    module = at.module()
    image, weights = normal(1, 1, 128, 32, 32), normal(2, 256, 128, 3, 3, scale=0.1)
    order = [0, 1, 2, 3]
    got = module.ref(
        *_torch(image, module._pre_transpose_filter(weights)),
        padding=((1, 1), (1, 1)), stride=(1, 1), rhs_dilation=(1, 1), in_perm=order, kern_perm=order, out_perm=order,
    )  # fmt: skip
    at.close(got, torch.nn.functional.conv2d(*_torch(image, weights), padding=1), 1e-4, 1e-3)


def _flash(q, k, v, visible):
    """(o, s, m): attention without scale and not yet divided, the sum of its powers, and the largest product."""
    scores = np.where(visible, q @ k, -9984.0)
    m = scores.max(1, keepdims=True)
    power = np.exp(scores - m)
    return power @ v, power.sum(1, keepdims=True), m


def _check_flash(at, got, want):
    o, s, m = want
    at.close(got[0] / as_float(s), o / s, 1e-2, 1e-2)
    at.close(got[1], np.log(s) + m, 1e-3, 1e-2)
    at.close(got[2], m, 1e-3, 1e-3)


@autocomp(f"{ADVANCED}/6_csa_2048_test.py")
def causal_attention(at):
    import vtrn.nki.language as nl

    steps = 2048
    q, k, v = normal(1, steps, 128, scale=0.2), normal(2, 128, steps), uniform(3, steps, 128)
    visible = np.tril(np.ones((steps, steps), np.float32))
    got = at.module().flash_attention_core(
        *_torch(q, k, v, visible), kernel_dtype=nl.bfloat16, acc_type=nl.float32, seq_len=steps, d_head=128
    )
    _check_flash(at, [as_float(x) for x in got], _flash(*(bfloat16(x)[1] for x in (q, k, v)), visible > 0))


@autocomp(f"{ADVANCED}/8_mha_test.py")
def causal_attention_of_heads(at):
    import vtrn.nki.language as nl

    heads, steps = 2, 1024
    q, k, v = normal(1, heads, steps, 128, scale=0.2), normal(2, heads, 128, steps), uniform(3, heads, steps, 128)
    visible = np.tril(np.ones((steps, steps), np.float32))
    got = at.module().flash_attention_core(
        *_torch(q, k, v, visible), kernel_dtype=nl.bfloat16, acc_type=nl.float32, num_heads=heads, seq_len=steps, d_head=128
    )
    for head in range(heads):
        want = _flash(*(bfloat16(x[head])[1] for x in (q, k, v)), visible > 0)
        _check_flash(at, [as_float(x[head]) for x in got], want)


@autocomp(f"{ADVANCED}/7_csa_16384.py", kernels=2)
def one_step_of_attention_over_16384_keys(at):
    """one step of attention over 16,384 keys, and the transpose of its powers"""
    import vtrn.nki.language as nl

    keys, tile = 16384, 100
    q, k, v = normal(1, 128, keys, scale=0.2), normal(2, 128, keys), uniform(3, 128, keys // 128, 128)
    before = uniform(4, 128, 130)
    rows = slice(tile * 128, tile * 128 + 128)
    visible = np.arange(keys) <= np.arange(keys)[rows, None]
    got = at.module()._flash_attention_core(
        *_torch(q, k, v, before), kernel_dtype=nl.bfloat16, acc_type=nl.float32, tile_mask=_torch(visible)[0], q_tile_idx=tile,
        LARGE_KV_TILE_SIZE=keys,
    )  # fmt: skip
    q0, k0, v0, before0 = (bfloat16(x)[1] for x in (q, k, v, before))
    o, s, m = _flash(q0.T[rows], k0, v0.transpose(1, 0, 2).reshape(keys, 128), visible)
    m_new = np.maximum(m, before0[:, 129:])
    old, new = np.exp(before0[:, 129:] - m_new), np.exp(m - m_new)
    want = np.concatenate([before0[:, :128] * old + o * new, before0[:, 128:129] * old + s * new, m_new], axis=1)
    at.close(got, want, 2e-2, 2e-2)


def _own_verdict(name, path, reference):
    """A harness that compares its kernel with a CPU reference of its own."""

    def check(at):
        module = at.module()
        at.true(module.test_nki(module.ref, module.ref), "its own test says the results differ")

    check.__name__ = name
    check.__doc__ = name.replace("_", " ")
    autocomp(f"{INTERNAL}/{path}", reference)(check)


_own_verdict("flashvsr_attention", "12_flashvsr_fp32attn_test.py", "its own, NumPy")
_own_verdict("gemm_of_transposed", "15_gemm_test.py", "its own, NumPy")
_own_verdict("fft_256", "5_fft256_test.py", "its own, numpy.fft")
_own_verdict("mamba_scan", "6_mamba_scan_test.py", "its own, PyTorch")
_own_verdict("trotter_evolution", "7_trotter_test.py", "its own, NumPy")
_own_verdict("deltanet_recurrence", "8_deltanet_recurrent_test.py", "its own, PyTorch")


@autocomp(f"{INTERNAL}/4_trimul_test.py")
def triangle_product(at):
    (a, a0), (b, b0) = (bfloat16(normal(seed, 128, 128, 128, scale=0.1)) for seed in (1, 2))
    at.close(at.module().ref(a, b), np.einsum("ikd,jkd->ijd", a0, b0), 1e-2, 1e-2)


@autocomp(f"{INTERNAL}/10_openfold3_trimul_test.py")
def triangle_product_of_openfold(at):
    (a, a0), (b, b0) = (bfloat16(normal(seed, 512, 512, scale=0.1)) for seed in (1, 2))
    at.close(at.module().ref(a, b), a0.T @ b0, 1e-2, 1e-2)


@autocomp(f"{INTERNAL}/3_triattn_test.py")
def triangle_attention(at):
    n, heads, d = 128, 4, 32
    (q, q0), (k, k0), (v, v0) = (bfloat16(normal(seed, n, n, heads * d)) for seed in (1, 2, 3))
    bias, bias0 = bfloat16(normal(4, n, n, heads))
    split = [x.reshape(n, n, heads, d) for x in (q0, k0, v0)]
    scores = np.einsum("ijhd,ikhd->ihjk", *split[:2]) / np.sqrt(d) + bias0.transpose(2, 0, 1)[None]
    want = np.einsum("ihjk,ikhd->ijhd", softmax(scores), split[2]).reshape(n, n, heads * d)
    at.close(at.module().ref(q, k, v, bias, 1 / np.sqrt(d)), want, 3e-2, 3e-2)
