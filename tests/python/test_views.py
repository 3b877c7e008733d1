"""reshape, permute, broadcast, view(dtype), rearrange, ap ...: against NumPy's views."""

import numpy as np
import pytest
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from helpers import load, run

ARRAY = np.arange(8 * 4 * 6, dtype=np.float32).reshape(8, 4, 6)


def both(check):
    """Runs check(tensor, array) for a tensor in HBM and for a tile in SBUF."""

    def kernel(x):
        check(x, ARRAY)
        check(load(x), ARRAY)

    run(kernel, ARRAY.copy())


def same(view, array):
    assert view.shape == array.shape
    assert np.array_equal(view.numpy(), array)


def test_reshape_and_friends():
    def check(t, a):
        same(t.reshape((8, 24)), a.reshape(8, 24))
        same(t.reshape((8, 2, -1)), a.reshape(8, 2, 12))
        same(t.reshape([8, 2, 2, 6]), a.reshape(8, 2, 2, 6))
        same(t.reshape_dim(2, (2, -1)), a.reshape(8, 4, 2, 3))
        same(t.flatten_dims(1, 2), a.reshape(8, 24))
        same(t.expand_dim(1), a[:, None])
        same(t.expand_dim(3), a[..., None])
        same(t.expand_dim(2).squeeze_dim(2), a)
        same(t[:, 0:2].reshape((8, 12)), a[:, 0:2].reshape(8, 12))
        same(t.permute((0, 2, 1)), a.transpose(0, 2, 1))
        same(t.permute((0, 2, 1))[:, 1:3], a.transpose(0, 2, 1)[:, 1:3])
        same(t[:, 1:2].broadcast(1, 5), np.broadcast_to(a[:, 1:2], (8, 5, 6)))
        same(t.slice(2, 1, 5, 2), a[:, :, 1:5:2])
        same(t.select(1, 3), a[:, 3])
        same(t.slice(dim=0, start=2, end=6), a[2:6])

    both(check)


def test_rearrange_splits_reorders_and_merges():
    def check(t, a):
        same(t.rearrange(("b", ("h", "g"), "w"), ("b", "w", "h", "g"), {"h": 2}), a.reshape(8, 2, 2, 6).transpose(0, 3, 1, 2))
        same(t.rearrange(("b", "h", ("w", "v")), ("b", ("h", "w"), "v"), {"v": 3}), a.reshape(8, 8, 3))
        with pytest.raises(vtrn.NkiValueError, match="same names"):
            t.rearrange(("a", "b", "c"), ("a", "b", "d"))
        with pytest.raises(vtrn.NkiValueError, match="not contiguous"):
            t.rearrange(("a", "b", "c"), ("a", ("c", "b")))

    both(check)


def test_view_as_another_dtype():
    def check(t, a):
        same(t.view(nl.int32), a.view(np.int32))
        same(t.view(nl.uint16), a.view(np.uint16))
        same(t[:, 1:3].reinterpret_cast(nl.uint8), np.ascontiguousarray(a[:, 1:3]).view(np.uint8))
        half = t.view(nl.uint16)
        assert half.dtype == nl.uint16 and half.strides[-1] == 1
        same(half.view(nl.float32), a)
        with pytest.raises(vtrn.NkiValueError, match="not contiguous"):
            t[:, :, ::2].view(nl.uint8)
        with pytest.raises(vtrn.NkiValueError, match="last dimension"):
            t.view(nl.uint8)[:, :, 0:6].view(nl.float32)

    both(check)


def test_ap_is_relative_to_the_allocation_and_keeps_the_views_offset():
    def kernel(x):
        flat = ARRAY.reshape(-1)

        def want(offset, pattern):
            index = np.array(offset)
            for stride, count in pattern:
                index = index[..., None] + np.arange(count) * stride
            return flat[index]

        for pattern, offset in [([[24, 8], [1, 24]], None), ([[6, 5], [2, 3]], 7), ([[0, 4], [1, 3]], 2), ([[5, 3]], 1)]:
            view = x.ap(pattern, offset=offset) if offset is not None else x.ap(pattern)
            same(view, want(offset or 0, pattern))
        same(x[2, 1:].ap([[6, 2], [1, 6]], offset=3), want(2 * 24 + 6 + 3, [[6, 2], [1, 6]]))
        same(
            x.ap([[48, 8], [1, 4]], dtype=nl.uint16, offset=4),
            flat.view(np.uint16)[4 + np.add.outer(np.arange(8) * 48, np.arange(4))],
        )
        t = load(x)
        same(t.ap([[24, 4], [6, 2], [1, 3]], offset=2 * 24 + 1), want(49, [[24, 4], [6, 2], [1, 3]]))
        assert t[1:3].get_pattern() == [[24, 2], [6, 4], [1, 6]]
        same(t.ap(t[1:3].get_pattern(), offset=24), ARRAY[1:3])
        half = t[:, 0:2, :]  # a pattern made from a view's own shape steps over its partitions too
        same(half.ap([[12, 8], [6, 2], [1, 6]]), ARRAY[:, 0:2])
        same(t[:, 2:4, :].ap([[24, 4], [1, 12]]), ARRAY.reshape(8, 24)[0:4, 12:24])
        same(half.ap([[36, 2], [1, 3]]), ARRAY.reshape(8, 24)[[0, 3], 0:3])
        with pytest.raises(vtrn.NkiValueError, match="partition stride 13 is not a multiple of 24"):
            half.ap([[13, 4], [1, 3]])
        with pytest.raises(vtrn.NkiValueError, match="partition stride 23 is not a multiple of 24"):
            t.ap([[23, 4], [1, 3]])

    run(kernel, ARRAY.copy())


def test_contiguity_and_attributes():
    def kernel(x):
        t = load(x)
        assert t.is_contiguous() and t[:, 0:1].is_contiguous() and not t[:, :, 0:2].is_contiguous()
        assert t[0:4].is_contiguous() and not x[:, 0:2].is_contiguous() and x[0:2].is_contiguous()
        assert not t.is_indirect() and t.ndim == 3 and t.size == 192 and t.strides == (24, 6, 1)
        assert x.buffer == nl.hbm and t.buffer == nl.sbuf and t.dtype == nl.float32 and str(t.dtype) == "float32"
        named = nl.ndarray((4, 4), nl.bfloat16, buffer=nl.psum, name="acc")
        assert named.name == "acc" and named.buffer is nl.psum
        assert repr(named) == "<NkiTensor acc (4, 4) bfloat16 psum>"

    run(kernel, ARRAY.copy())


def test_partitions_stay_where_they_are():
    def kernel(x):
        t = load(x)
        for wrong in (
            lambda: t.permute((1, 0, 2)),
            lambda: t.reshape((4, 48)),
            lambda: t.reshape_dim(0, (2, 4)),
            lambda: t.flatten_dims(0, 1),
            lambda: t.expand_dim(0),
            lambda: t[0:1].broadcast(0, 4),
            lambda: t[0:1].squeeze_dim(0),
            lambda: t[None],
            lambda: t.rearrange(("a", "b", "c"), ("b", "a", "c")),
        ):
            with pytest.raises(vtrn.NkiValidationError):
                wrong()
        assert x.permute((1, 0, 2)).shape == (4, 8, 6) and x.reshape((4, 48)).shape == (4, 48)

    run(kernel, ARRAY.copy())


def test_vector_select_and_dynamic_select():
    table = np.arange(60, dtype=np.float32).reshape(10, 6)
    rows = np.array([[7], [0], [9], [3]], np.int32)

    def kernel(table_hbm, rows_hbm):
        rows_sb = load(rows_hbm)
        out = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm)
        one = nl.ndarray((1, 6), nl.float32, buffer=nl.shared_hbm)
        gathered = nl.ndarray((4, 6), nl.float32)
        picked = table_hbm.vector_select(0, rows_sb)
        assert picked.is_indirect() and picked.shape == (4, 6)
        nisa.dma_copy(gathered, picked)
        nisa.dma_copy(out, gathered)
        nisa.dma_copy(one, table_hbm.select(0, rows_sb[2:3]).reshape((1, 6)))
        with pytest.raises(vtrn.NkiIndexError, match="cannot be sliced"):
            picked[0:2]
        with pytest.raises(vtrn.NkiValueError, match="indirect already"):
            picked.select(1, rows_sb[0:1])
        return out, one

    gathered, one = run(kernel, table, rows)
    assert np.array_equal(gathered, table[rows[:, 0]])
    assert np.array_equal(one[0], table[9])
