"""Speed as a user of the Python front end sees it. Every ratio is taken against measures interleaved in this very process: the
register peak of the host (bench_peak.c) and torch.mm on bfloat16 (oneDNN), so that a disturbed minute disturbs all alike.

    bench_frontend.py --peak LIBRARY [--json FILE] [--quick] [NAME...]     benchmarks: matmul, python, launch, memory, long, pair
"""

import argparse
import ctypes
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import vtrn
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Peak:
    """Flop per nanosecond of VDPBF16PS (fp32 FMA where the host has none) on registers."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.bench_peak_pairs.restype = ctypes.c_double

    def rate(self, threads, calls=40):
        """The sum over threads that run at once, each as the median of its calls."""
        rates = [0.0] * threads
        together = threading.Barrier(threads)

        def measure(i):
            together.wait()
            rates[i] = statistics.median(self.library.bench_peak_pairs() for _ in range(calls))

        workers = [threading.Thread(target=measure, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(rates)


def matmul(a_t, b):
    """c = a_t.T @ b, as in examples/matmul_bf16.py; a_t by blocks of rows of c that fit in SBUF."""
    k_size, m_size = a_t.shape
    n_size = b.shape[1]
    k_tiles, block_m = k_size // 128, min(m_size, 2048)
    c = nl.ndarray((m_size, n_size), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, m_size, block_m):
        a_tiles = nl.ndarray((128, k_tiles, block_m), dtype=a_t.dtype, buffer=nl.sbuf)
        for k in range(k_tiles):
            nisa.dma_copy(dst=a_tiles[:, k, :], src=a_t[k * 128 : (k + 1) * 128, m0 : m0 + block_m])
        for n in range(0, n_size, 512):
            b_tiles = nl.ndarray((128, k_tiles, 512), dtype=b.dtype, buffer=nl.sbuf)
            for k in range(k_tiles):
                nisa.dma_copy(dst=b_tiles[:, k, :], src=b[k * 128 : (k + 1) * 128, n : n + 512])
            for m in range(0, block_m, 128):
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                for k in range(k_tiles):
                    nisa.nc_matmul(dst=total, stationary=a_tiles[:, k, m : m + 128], moving=b_tiles[:, k, :])
                tile = nl.ndarray((128, 512), dtype=c.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=tile, src=total)
                nisa.dma_copy(dst=c[m0 + m : m0 + m + 128, n : n + 512], src=tile)
    return c


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bench_matmul(options):
    import ml_dtypes

    size = 1024 if options.quick else 4096
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), np.float32).astype(ml_dtypes.bfloat16) for _ in range(2))
    a_t = np.ascontiguousarray(a.T)
    peak = Peak(options.peak)
    native = None
    if HAS_TORCH:
        import torch

        a_torch, b_torch = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b))

        def native():
            return torch.mm(a_torch, b_torch)

    flop = 2.0 * size**3
    for threads, goal in ((1, 0.75), (2, 0.65)):
        if HAS_TORCH:
            torch.set_num_threads(threads)
        of_peak, of_native, ours = [], [], []
        for turn in range(2 + 5):
            seconds = timed(lambda: vtrn.run(matmul, a_t, b, target="trn2", threads=threads))  # noqa: B023
            native_seconds = timed(native) if native else None
            rate = peak.rate(threads)
            if turn >= 2:  # the first turns warm memory and the library
                ours.append(seconds)
                of_peak.append(flop / seconds / 1e9 / rate)
                of_native.append(native_seconds / seconds if native else 0)
        name = f"bf16 matmul {size}^3 from Python, {threads} thread{'s' if threads > 1 else ''}"
        yield f"{name}: rate", flop / statistics.median(ours) / 1e9, "GF/s", None, True
        yield f"{name}: part of the host's bf16 peak", statistics.median(of_peak), "ratio", goal, True
        if native:
            yield f"{name}: speed against torch.mm bf16", statistics.median(of_native), "ratio", 0.9, True


COUNT = 4000


def three_slices(x):
    """COUNT instructions with three sliced operands each."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a, b, c = (nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
    nisa.memset(dst=a, value=0.0)
    nisa.memset(dst=b, value=0.0)
    for _ in range(COUNT):
        nisa.tensor_tensor(dst=c[0:32, 0:8], data1=a[0:32, 8:16], data2=b[0:32, 16:24], op=nl.add)
    nisa.dma_copy(dst=out, src=c[0:32, 0:8])
    return out


def only_the_loop(x):
    """What three_slices costs without its instructions."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a, b, c = (nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
    nisa.memset(dst=a, value=0.0)
    nisa.memset(dst=b, value=0.0)
    for _ in range(COUNT):
        pass
    nisa.dma_copy(dst=out, src=c[0:32, 0:8])
    return out


def bench_python(options):
    """Recording runs everything but the instructions: slices, checks, encoding. That is what Python costs."""
    x = np.zeros((32, 8), np.float32)
    turns = 5 if options.quick else 25
    with_them = min(timed(lambda: vtrn.trace(three_slices, x, target="trn2")) for _ in range(turns))
    without = min(timed(lambda: vtrn.trace(only_the_loop, x, target="trn2")) for _ in range(turns))
    yield "Python front end, one instruction with three sliced operands", 1e6 * (with_them - without) / COUNT, "us", 0.5, False


def copy(x):
    out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
    nisa.dma_copy(dst=out, src=tile)
    return out


def bench_launch(options):
    x = np.zeros((128, 512), np.float32)
    times = sorted(timed(lambda: vtrn.run(copy, x, target="trn2")) for _ in range(50))
    yield "launch of a kernel of two instructions", 1e6 * times[len(times) // 2], "us", None, False
    program = vtrn.trace(copy, x, target="trn2")
    times = sorted(timed(lambda: program.run(x)) for _ in range(50))
    yield "replay of a program of two instructions", 1e6 * times[len(times) // 2], "us", None, False


def peak_resident_bytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise OSError("no VmHWM in /proc/self/status")


def memory_child(gibibytes):
    """In a process of its own: what a huge argument adds to the peak of resident memory."""
    vtrn.run(copy, np.zeros((128, 512), np.float32), target="trn2")  # everything is loaded and warm
    x = np.zeros((gibibytes << 21, 512), np.float32)  # pages that nobody touches are not resident
    before = peak_resident_bytes()
    vtrn.run(copy, x, target="trn2")
    print(peak_resident_bytes() - before)


def bench_memory(options):
    done = subprocess.run([sys.executable, __file__, "--memory-child", "4"], capture_output=True, text=True, check=True)
    yield "memory for a 4 GiB argument", int(done.stdout) / 2**20, "MiB", 64, False


def alternating(x, pairs):
    """2 * pairs instructions in a row."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a, b = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.dma_copy(dst=a, src=x)
    for _ in range(pairs):
        nisa.tensor_scalar(dst=b, data=a, op0=nl.add, operand0=1.0)
        nisa.tensor_copy(dst=a, src=b)
    nisa.dma_copy(dst=out, src=a)
    return out


def long_child(instructions):
    """In a process of its own: a long kernel runs, is recorded, saved, loaded and replayed; its memory and the result count."""
    x = np.zeros((16, 8), np.float32)
    seconds, results = {}, []

    def stage(name, call):
        start = time.perf_counter()
        result = call()
        seconds[name] = time.perf_counter() - start
        return result

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "long.vtrn"
        results.append(stage("run", lambda: vtrn.run(alternating, x, instructions // 2, target="trn2")))
        program = stage("trace", lambda: vtrn.trace(alternating, x, instructions // 2, target="trn2"))
        stage("save", lambda: program.save(path))
        program = stage("load", lambda: vtrn.Program.load(path))
        results.append(stage("replay", lambda: program.run(x)))
    right = all((result == instructions // 2).all() for result in results)
    print(json.dumps({"bytes": peak_resident_bytes(), "right": right, "seconds": seconds}))


def bench_long(options):
    count = 20_000 if options.quick else 1_000_000
    done = subprocess.run([sys.executable, __file__, "--long-child", str(count)], capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    if not got["right"]:
        raise AssertionError(f"a kernel of {count} instructions gave a wrong result")
    for name, seconds in got["seconds"].items():
        yield f"kernel of {count:,} instructions: {name}", seconds, "s", None, False
    yield f"kernel of {count:,} instructions: peak memory of all", got["bytes"] / 2**20, "MiB", 4096, False


def pair_matmul(a_t, b):
    """c = a_t.T @ b; each core of a pair computes its half of the columns."""
    columns = b.shape[1] // nl.num_programs()
    first = nl.program_id() * columns
    c = nl.ndarray((a_t.shape[1], b.shape[1]), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for n in range(first, first + columns, 512):
        b_tiles = nl.ndarray((128, b.shape[0] // 128, 512), dtype=b.dtype, buffer=nl.sbuf)
        for k in range(b.shape[0] // 128):
            nisa.dma_copy(dst=b_tiles[:, k, :], src=b[k * 128 : (k + 1) * 128, n : n + 512])
        for m in range(0, a_t.shape[1], 128):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(b.shape[0] // 128):
                a_tile = nl.load(a_t[k * 128 : (k + 1) * 128, m : m + 128])
                nisa.nc_matmul(dst=total, stationary=a_tile, moving=b_tiles[:, k, :])
            tile = nl.ndarray((128, 512), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=total)
            nisa.dma_copy(dst=c[m : m + 128, n : n + 512], src=tile)
    return c


def bench_pair(options):
    """Both cores of a logical core of two run at the same time: what a second host thread gains, traced and replayed."""
    import ml_dtypes

    size = 1024 if options.quick else 2048
    rng = np.random.default_rng(0)
    a_t, b = (rng.standard_normal((size, size), np.float32).astype(ml_dtypes.bfloat16) for _ in range(2))
    kernel = vtrn.nki.jit(pair_matmul)[2]
    program = vtrn.trace(kernel, a_t, b, target="trn2")
    calls = {
        "traced": lambda threads: vtrn.run(kernel, a_t, b, target="trn2", threads=threads),
        "replayed": lambda threads: program.run(a_t, b, threads=threads),
    }
    for name, call in calls.items():
        gains = [timed(lambda: call(1)) / timed(lambda: call(2)) for _ in range(2 + 5)]  # noqa: B023
        yield f"two cores on two threads, {name}: times one thread", statistics.median(gains[2:]), "x", None, True


BENCHMARKS = {
    "matmul": bench_matmul,
    "python": bench_python,
    "launch": bench_launch,
    "memory": bench_memory,
    "long": bench_long,
    "pair": bench_pair,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--peak", help="bench_peak's shared library, from the build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory-child", type=int)
    parser.add_argument("--long-child", type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.memory_child:
        memory_child(options.memory_child)
        return 0
    if options.long_child:
        long_child(options.long_child)
        return 0
    rows = []
    for name in options.names or BENCHMARKS:
        for label, value, unit, goal, more_is_better in BENCHMARKS[name](options):
            ok = goal is None or (value >= goal if more_is_better else value <= goal)
            sign = ">=" if more_is_better else "<="
            print(
                f"{label:58} {value:9.3f} {unit:8}"
                + (f" goal {sign} {goal:g} {'' if ok else 'MISSED'}" if goal is not None else ""),
                flush=True,
            )
            rows.append({"name": label, "value": value, "unit": unit, "goal": goal, "ok": ok})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
