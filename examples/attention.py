"""Fused causal attention, forward: softmax(q k^T / sqrt(d)) v without ever holding the score matrix.

The rows' maximum and sum are kept while the keys stream by, and what was summed so far is rescaled when a larger score
appears (online softmax).

    vtrn run examples/attention.py
"""

import common
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

ROWS = 128  # queries of one step: the partitions
KEYS = 512  # keys of one step: one PSUM bank of fp32 scores


def masked_scores(scores_psum, q_start, k_start):
    """The scores in SBUF; keys behind their query get the most negative number."""
    scores = nl.ndarray(scores_psum.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=scores, src=scores_psum, engine=nisa.vector_engine)
    if k_start + KEYS - 1 > q_start:  # some key of this step is behind some query
        # query q_start + p may see key k_start + i when q_start - k_start + p - i >= 0
        nisa.affine_select(
            dst=scores,
            pattern=[[-1, KEYS]],
            channel_multiplier=1,
            offset=q_start - k_start,
            on_true_tile=scores,
            on_false_value=-1e30,
            cmp_op=nl.greater_equal,
        )
    return scores


def weighted_values(weights, v_tiles, k_start, out):
    """out[queries, d] = weights[queries, KEYS] @ v[keys, d]: the keys must lie on the partitions, so weights are transposed."""
    blocks = KEYS // ROWS
    for j in range(blocks):
        turned_psum = nl.ndarray((ROWS, ROWS), dtype=weights.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned_psum, data=weights[:, j * ROWS : (j + 1) * ROWS], engine=nisa.tensor_engine)
        turned = nl.ndarray((ROWS, ROWS), dtype=weights.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=turned, src=turned_psum, engine=nisa.vector_engine)
        nisa.nc_matmul(dst=out, stationary=turned, moving=v_tiles[:, k_start // ROWS + j, :])


def attend_rows(q_tile, k_tile, v_tiles, q_start, d, scale):
    """Attention of ROWS queries over all keys that they may see; the result is a bf16 tile."""
    largest = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)  # of scale * scores so far
    total = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)  # of the weights
    result = nl.ndarray((ROWS, d), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=largest, value=-1e30)
    nisa.memset(dst=total, value=0.0)
    nisa.memset(dst=result, value=0.0)

    for k_start in range(0, q_start + ROWS, KEYS):
        scores_psum = nl.ndarray((ROWS, KEYS), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores_psum, stationary=q_tile, moving=k_tile[:, k_start : k_start + KEYS])
        scores = masked_scores(scores_psum, q_start, k_start)

        # The maximum of these scores and of all before; minus it is the bias of exp.
        step_max = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        new_max = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        minus_max = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=step_max, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_scalar(dst=new_max, data=step_max, op0=nl.multiply, operand0=scale, op1=nl.maximum, operand1=largest)
        nisa.tensor_scalar(dst=minus_max, data=new_max, op0=nl.multiply, operand0=-1.0)

        # Weights and their sums in one pass; then what is there already shrinks by exp(old maximum - new maximum).
        weights = nl.ndarray((ROWS, KEYS), dtype=nl.bfloat16, buffer=nl.sbuf)
        step_sum = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        shrink = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=weights, op=nl.exp, data=scores, bias=minus_max, scale=scale, reduce_op=nl.add, reduce_res=step_sum
        )
        nisa.activation(dst=shrink, op=nl.exp, data=largest, bias=minus_max)
        nisa.scalar_tensor_tensor(dst=total, data=total, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=step_sum)
        nisa.tensor_copy(dst=largest, src=new_max)

        step_result = nl.ndarray((ROWS, d), dtype=nl.float32, buffer=nl.psum)
        weighted_values(weights, v_tiles, k_start, step_result)
        nisa.scalar_tensor_tensor(
            dst=result, data=result, op0=nl.multiply, operand0=shrink, op1=nl.add, operand1=step_result
        )

    share = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
    rows = nl.ndarray((ROWS, d), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.reciprocal(dst=share, data=total)
    nisa.tensor_scalar(dst=rows, data=result, op0=nl.multiply, operand0=share)
    return rows


@nki.jit
def attention(q_t, k_t, v):
    """q_t and k_t are [heads, d, sequence], v is [heads, sequence, d]; d is 128, the sequence a multiple of 512."""
    heads, d, length = q_t.shape
    out = nl.ndarray((heads, length, d), dtype=v.dtype, buffer=nl.shared_hbm)
    for head in range(heads):
        k_tile = nl.ndarray((d, length), dtype=k_t.dtype, buffer=nl.sbuf)
        v_tiles = nl.ndarray((ROWS, length // ROWS, d), dtype=v.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=k_tile, src=k_t[head])
        for j in range(length // ROWS):
            nisa.dma_copy(dst=v_tiles[:, j, :], src=v[head, j * ROWS : (j + 1) * ROWS, :])
        for q_start in range(0, length, ROWS):
            q_tile = nl.ndarray((d, ROWS), dtype=q_t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=q_tile, src=q_t[head, :, q_start : q_start + ROWS])
            rows = attend_rows(q_tile, k_tile, v_tiles, q_start, d, d**-0.5)
            nisa.dma_copy(dst=out[head, q_start : q_start + ROWS, :], src=rows)
    return out


def reference_attention(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    scores[:, ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def run(heads=8, length=1024, d=128) -> common.Outcome:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((heads, length, d), np.float32).astype(ml_dtypes.bfloat16) for _ in range(3))
    q_t, k_t = (np.ascontiguousarray(x.transpose(0, 2, 1)) for x in (q, k))
    reference = reference_attention(q, k, v)

    if common.HAS_TORCH:
        import torch

        tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)[None] for x in (q, k, v)]
        native = "torch sdpa bf16"

        def native_call():
            return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)
    else:
        native, native_call = "numpy fp32", lambda: reference_attention(q, k, v)
    size = f"{heads} heads x {length} x {d}"
    return common.outcome("causal attention", size, lambda: attention(q_t, k_t, v), reference, 2**-6, native, native_call)


if __name__ == "__main__":
    common.main(run)
