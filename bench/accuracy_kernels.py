"""Kernels that re-create published measurements: the same tiling and instructions, written for vtrn.

Each is what its source describes (bench_accuracy.py names the source of every case); none is the source's code.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


def sbuf(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def load(src):
    tile = sbuf(src.shape, src.dtype)
    nisa.dma_copy(dst=tile, src=src)
    return tile


# ---------------------------------------------------------------- the tutorial's matmul: out[M, N] = lhs_t[K, M].T @ rhs[K, N]
def _out(lhs_t, rhs):
    return nl.ndarray((lhs_t.shape[1], rhs.shape[1]), dtype=lhs_t.dtype, buffer=nl.shared_hbm)


def _store(out, m, n, total):
    tile = sbuf((P, 512), out.dtype)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=out[m * P : (m + 1) * P, n * 512 : (n + 1) * 512], src=tile)


def _lhs(lhs_t, k, m):
    return load(lhs_t[k * P : (k + 1) * P, m * P : (m + 1) * P])


def _rhs(rhs, k, n):
    return load(rhs[k * P : (k + 1) * P, n * 512 : (n + 1) * 512])


def _psum():
    return nl.ndarray((P, 512), dtype=nl.float32, buffer=nl.psum)


@nki.jit
def matmul_tiled(lhs_t, rhs):
    out = _out(lhs_t, rhs)
    for m in range(out.shape[0] // P):
        for n in range(out.shape[1] // 512):
            total = _psum()
            for k in range(lhs_t.shape[0] // P):
                nisa.nc_matmul(dst=total, stationary=_lhs(lhs_t, k, m), moving=_rhs(rhs, k, n))
            _store(out, m, n, total)
    return out


@nki.jit
def matmul_hoisted(lhs_t, rhs):
    out = _out(lhs_t, rhs)
    steps = range(lhs_t.shape[0] // P)
    for m in range(out.shape[0] // P):
        left = [_lhs(lhs_t, k, m) for k in steps]
        for n in range(out.shape[1] // 512):
            right = [_rhs(rhs, k, n) for k in steps]
            total = _psum()
            for k in steps:
                nisa.nc_matmul(dst=total, stationary=left[k], moving=right[k])
            _store(out, m, n, total)
    return out


@nki.jit
def matmul_blocked(lhs_t, rhs):
    out = _out(lhs_t, rhs)
    steps = range(lhs_t.shape[0] // P)
    for m in range(0, out.shape[0] // P, 2):
        left = [[_lhs(lhs_t, k, m + i) for k in steps] for i in range(2)]
        for n in range(0, out.shape[1] // 512, 2):
            right = [[_rhs(rhs, k, n + j) for k in steps] for j in range(2)]
            for i in range(2):
                for j in range(2):
                    total = _psum()
                    for k in steps:
                        nisa.nc_matmul(dst=total, stationary=left[i][k], moving=right[j][k])
                    _store(out, m + i, n + j, total)
    return out


@nki.jit
def matmul_all_blocked(lhs_t, rhs):
    """Blocks of 16 x 2 x 8 tiles of M, N, K; sums of blocks of K in SBUF; loads as wide as a block."""
    out = _out(lhs_t, rhs)
    bm, bn, bk = 16, 2, 8
    for n in range(0, out.shape[1] // 512, bn):
        sums = [sbuf((P, bn, 512)) for _ in range(out.shape[0] // P)]
        for tile in sums:
            nisa.memset(dst=tile, value=0)
        for k in range(0, lhs_t.shape[0] // P, bk):
            right = [load(rhs[(k + i) * P : (k + i + 1) * P, n * 512 : (n + bn) * 512]) for i in range(bk)]
            for m in range(0, out.shape[0] // P, bm):
                left = [load(lhs_t[(k + i) * P : (k + i + 1) * P, m * P : (m + bm) * P]) for i in range(bk)]
                for i in range(bm):
                    for j in range(bn):
                        total = _psum()
                        for kk in range(bk):
                            nisa.nc_matmul(
                                dst=total, stationary=left[kk][:, i * P : (i + 1) * P], moving=right[kk][:, j * 512 : (j + 1) * 512]
                            )
                        part = sums[m + i][:, j, :]
                        nisa.tensor_tensor(dst=part, data1=part, data2=total, op=nl.add)
        for m, tile in enumerate(sums):
            nisa.dma_copy(dst=out[m * P : (m + 1) * P, n * 512 : (n + bn) * 512], src=tile)
    return out


@nki.jit
def matmul_reloaded(lhs_t, rhs):
    """Blocks of 1024 columns: both operands are loaded again for each pair of a row of tiles and a block."""
    out = _out(lhs_t, rhs)
    steps = range(lhs_t.shape[0] // P)
    for m in range(out.shape[0] // P):
        for n in range(0, out.shape[1] // 512, 2):
            totals = [_psum(), _psum()]
            for k in steps:
                left = _lhs(lhs_t, k, m)
                right = load(rhs[k * P : (k + 1) * P, n * 512 : (n + 2) * 512])
                for j in range(2):
                    nisa.nc_matmul(dst=totals[j], stationary=left, moving=right[:, j * 512 : (j + 1) * 512])
            for j in range(2):
                _store(out, m, n + j, totals[j])
    return out


@nki.jit
def batched_matmul(a, b):
    """out[i] = a[i].T @ b[i] with a, b [batch, 64, 4096]: everything is loaded once and a row of tiles stored whole."""
    batch, _, size = a.shape
    out = nl.ndarray((batch, size, size), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(batch):
        left, right = load(a[i]), load(b[i])
        for m in range(size // P):
            row = sbuf((P, size), a.dtype)
            for n in range(size // 512):
                total = _psum()
                nisa.nc_matmul(dst=total, stationary=left[:, m * P : (m + 1) * P], moving=right[:, n * 512 : (n + 1) * 512])
                engine = (nisa.vector_engine, nisa.scalar_engine)[n % 2]
                part = row[:, n * 512 : (n + 1) * 512]
                if engine is nisa.vector_engine:
                    nisa.tensor_copy(dst=part, src=total)
                else:
                    nisa.activation(dst=part, op=nl.copy, data=total)
            nisa.dma_copy(dst=out[i, m * P : (m + 1) * P, :], src=row)
    return out


# ---------------------------------------------------------------- mamba: channels in partitions, 16 states
# The compiler of the measurements broadcasts rows over partitions with the tensor engine, into PSUM, and takes products that do
# not change with the state out of the loop over states where their operands are loaded outside (v2, v3): done here by hand.
def _ones():
    tile = sbuf((1, P))
    nisa.memset(dst=tile, value=1)
    return tile


def _rows(ones, x, state, first, last):
    """Row `state` of x[states, seq] in every partition, in PSUM, 512 columns a bank."""
    row = load(x[state : state + 1, first:last])
    rows = nl.ndarray((P, last - first), dtype=nl.float32, buffer=nl.psum)
    for at in range(0, last - first, 512):
        nisa.nc_matmul(dst=rows[:, at : at + 512], stationary=ones, moving=row[:, at : at + 512])
    return rows


def _mamba_state(delta, u_delta, a, b, c, total, initial):
    """The steps of one state but the product of delta and u. Returns the scan's tile."""
    seq = delta.shape[1]
    decay, scanned, added = sbuf((P, seq)), sbuf((P, seq)), sbuf((P, seq))
    nisa.activation(dst=decay, op=nl.exp, data=delta, scale=a)
    driven = sbuf((P, seq))
    nisa.tensor_tensor(dst=driven, data1=u_delta, data2=b, op=nl.multiply)
    nisa.tensor_tensor_scan(dst=scanned, data0=decay, data1=driven, initial=initial, op0=nl.multiply, op1=nl.add)
    nisa.tensor_tensor(dst=added, data1=scanned, data2=c, op=nl.multiply)
    nisa.tensor_tensor(dst=total, data1=total, data2=added, op=nl.add)
    return scanned


def _product(x, y):
    tile = sbuf(x.shape)
    nisa.tensor_tensor(dst=tile, data1=x, data2=y, op=nl.multiply)
    return tile


def _zeros(seq):
    tile = sbuf((P, seq))
    nisa.memset(dst=tile, value=0)
    return tile


@nki.jit
def mamba_v1(delta, u, a, b, c):
    """Loads everything again for each state."""
    channels, seq = delta.shape
    out = nl.ndarray((channels, seq), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = _ones()
    for ch in range(0, channels, P):
        total = _zeros(seq)
        for s in range(b.shape[0]):
            d = load(delta[ch : ch + P, :])
            a_s = load(a[ch : ch + P, s : s + 1])
            product = _product(d, load(u[ch : ch + P, :]))
            _mamba_state(d, product, a_s, _rows(ones, b, s, 0, seq), _rows(ones, c, s, 0, seq), total, 0.0)
        nisa.dma_copy(dst=out[ch : ch + P, :], src=total)
    return out


@nki.jit
def mamba_v3(delta, u, a, b, c):
    """delta and u once for all states; tiles the sequence by 512; the scan goes on from the last column of the tile before.

    With a sequence of 512 it is v2.
    """
    channels, seq = delta.shape
    out = nl.ndarray((channels, seq), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = _ones()
    for ch in range(0, channels, P):
        total = _zeros(seq)
        d, u_c = load(delta[ch : ch + P, :]), load(u[ch : ch + P, :])
        product = _product(d, u_c)
        for s in range(b.shape[0]):
            a_s = load(a[ch : ch + P, s : s + 1])
            initial = 0.0
            for t in range(0, seq, 512):
                part = slice(t, t + 512)
                rows = [_rows(ones, x, s, t, t + 512) for x in (b, c)]
                scanned = _mamba_state(d[:, part], product[:, part], a_s, *rows, total[:, part], initial)
                if t + 512 < seq:
                    initial = sbuf((P, 1))
                    nisa.tensor_copy(dst=initial, src=scanned[:, 511:512])
        nisa.dma_copy(dst=out[ch : ch + P, :], src=total)
    return out


# ---------------------------------------------------------------- a course's vector additions and transpose
def vector_add(rows, columns):
    """c = a + b in tiles of [rows, columns], two loads and a store each."""

    @nki.jit
    def add(a, b):
        out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        size = rows * columns
        for i in range(a.shape[0] // size):
            part = slice(i * size, (i + 1) * size)
            x = load(a[part].reshape((rows, columns)))
            y = load(b[part].reshape((rows, columns)))
            z = sbuf((rows, columns))
            nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add)
            nisa.dma_copy(dst=out[part].reshape((rows, columns)), src=z)
        return out

    return add


@nki.jit
def transpose(x):
    """128 x 128 tiles by the tensor engine."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, rows, P):
        for j in range(0, columns, P):
            tile = load(x[i : i + P, j : j + P])
            turned = nl.ndarray((P, P), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=tile)
            result = sbuf((P, P), x.dtype)
            nisa.tensor_copy(dst=result, src=turned)
            nisa.dma_copy(dst=out[j : j + P, i : i + P], src=result)
    return out


# ---------------------------------------------------------------- one DMA, one instruction
@nki.jit
def one_load(x):
    load(x)


@nki.jit
def many_loads(x):
    """x[n, P, elements]: n loads of [P, elements], one behind the other in a queue."""
    for i in range(x.shape[0]):
        load(x[i])


def one_instruction(call, *tiles):
    """A kernel that makes the tiles (shape, dtype, buffer) and calls call(*tiles) once; the first is the result."""

    @nki.jit
    def kernel(x):
        made = [nl.ndarray(shape, dtype=dtype, buffer=buffer) for shape, dtype, buffer in tiles]
        call(*made)

    return kernel
