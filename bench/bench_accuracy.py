"""Predicted against published times: re-creates measured cases and prints predicted, measured, error.

    python bench/bench_accuracy.py [--json FILE] [--only TEXT] [--quick] [--public FOLDER]

Rows are {id, system, predicted, measured, unit, error}; ids are those of the calibration set (kernels K..., microbenchmarks
U..., instruction durations of public trn2 profiles P...). The error is predicted / measured - 1. `fitted` says that numbers in
src/arch were derived from the case. --quick leaves out what takes more than a few seconds.
"""

import argparse
import functools
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vtrn

vtrn.install_nki()
import accuracy_kernels as k  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

F32 = np.float32
CASES = []


def case(id, system, family, measured, unit, fitted=False, slow=False):
    """Registers a function that returns the prediction in `unit`."""

    def add(function):
        CASES.append({"id": id, "system": system, "family": family, "measured": measured, "unit": unit, "fitted": fitted,
                      "slow": slow, "predict": function})  # fmt: skip
        return function

    return add


def zeros(*shape, dtype=F32):
    return np.zeros(shape, dtype)


@functools.lru_cache(maxsize=4)
def _timed(kernel, shapes, system, static):
    program = vtrn.trace(kernel, *[zeros(*shape) for shape in shapes], target=system)
    return program.time(static_dma=static)


def timed(kernel, *shapes, system="trn2", static=False):
    return _timed(kernel, shapes, system, static)


def total_us(*args, **kwargs):
    return timed(*args, **kwargs).total_ps / 1e6


# ---------------------------------------------------------------- the tutorial's matmul ladder, fp32, K 8192, M 4096, N 8192
LADDER = ((8192, 4096), (8192, 8192))
FLOPS = 2 * 8192 * 4096 * 8192
PEAK = 78.6e12  # what the profiler's HFU divides by: 128 x 128 x 2 x 2.4 GHz


def stream(profile, name):
    return next(s for s in profile.streams if s["stream"] == name)


def memory(profile, name):
    return next(m for m in profile.memories if m["memory"] == name)


def hfu(kernel):
    return 100 * FLOPS / (timed(kernel, *LADDER).total_ps / 1e12) / PEAK


def active_ms(kernel, name):
    return stream(timed(kernel, *LADDER), name)["active_ps"] / 1e9


def ladder(id, measured, unit, predict, kernel):
    case(id, "trn2", "matmul ladder", measured, unit, slow=True)(lambda: predict(kernel))


def ladder_ms(kernel):
    return total_us(kernel, *LADDER) / 1e3


ladder("K001", 39.894938, "ms", ladder_ms, k.matmul_tiled)
ladder("K002", 34.82, "ms", lambda kernel: active_ms(kernel, "tensor"), k.matmul_tiled)
ladder("K004", 17.52, "%", hfu, k.matmul_tiled)
ladder("K005", 28.197982, "ms", ladder_ms, k.matmul_hoisted)
ladder("K006", 28.16, "ms", lambda kernel: active_ms(kernel, "tensor"), k.matmul_hoisted)
ladder("K008", 24.79, "%", hfu, k.matmul_hoisted)
ladder("K012", 24.6, "%", hfu, k.matmul_blocked)
ladder("K016", 24.7, "%", hfu, k.matmul_all_blocked)


# ---------------------------------------------------------------- NKIBench on trn1, fp32: tilings inferred from published bytes
case("K080", "trn1", "matmul", 35.199742, "ms", slow=True)(
    lambda: total_us(k.matmul_reloaded, (5120, 4096), (5120, 12288), system="trn1") / 1e3
)
case("K080 HBM read", "trn1", "counter", 9059762176, "B", slow=True)(
    lambda: memory(timed(k.matmul_reloaded, (5120, 4096), (5120, 12288), system="trn1"), "hbm")["read_bytes"]
)
case("K093", "trn1", "matmul", 4.33321, "ms", slow=True)(
    lambda: total_us(k.batched_matmul, (16, 64, 4096), (16, 64, 4096), system="trn1") / 1e3
)
case("K093 HBM read", "trn1", "counter", 33619968, "B", slow=True)(
    lambda: memory(timed(k.batched_matmul, (16, 64, 4096), (16, 64, 4096), system="trn1"), "hbm")["read_bytes"]
)


# ---------------------------------------------------------------- mamba
def mamba_shapes(channels, seq):
    return (channels, seq), (channels, seq), (channels, 16), (16, seq), (16, seq)


def mamba(kernel, channels, seq):
    return total_us(kernel, *mamba_shapes(channels, seq), system="trn1")


case("K019", "trn1", "mamba", 172.93, "us", fitted=True)(lambda: mamba(k.mamba_v1, 256, 512))
case("K020", "trn1", "mamba", 148.99, "us")(
    lambda: stream(timed(k.mamba_v1, *mamba_shapes(256, 512), system="trn1"), "vector")["active_ps"] / 1e6
)
for id, kernel, seq, measured in (
    ("K022", k.mamba_v3, 512, 1.61),
    ("K026", k.mamba_v3, 512, 1.6),
    ("K030", k.mamba_v3, 2048, 6.6),
    ("K034", k.mamba_v3, 4096, 13.3),
    ("K038", k.mamba_v3, 6144, 19.6),
    ("K042", k.mamba_v3, 8192, 27.8),
):
    case(id, "trn1", "mamba", measured, "ms", slow=seq > 512)(lambda kernel=kernel, seq=seq: mamba(kernel, 4096, seq) / 1e3)

# ---------------------------------------------------------------- small kernels
for id, system, rows, columns, n, measured, fitted in (
    ("K151", "trn2", 1, 1, 25600, 37318, True),
    ("K152", "trn2", 128, 1, 25600, 378, True),
    ("K153", "trn2", 128, 2, 25600, 186, True),
    ("K160", "trn2", 128, 1000, 256000, 27.85829, True),
    ("K161", "trn2", 128, 2000, 256000, 28.358289, True),
    ("K167", "trn1", 1, 1, 25600, 27404, True),
    ("K168", "trn1", 128, 1, 25600, 206, True),
):
    kernel = k.vector_add(rows, columns)
    case(id, system, "vector addition", measured, "us", fitted=fitted)(
        lambda kernel=kernel, n=n, system=system: total_us(kernel, (n,), (n,), system=system)
    )
case("K155", "trn2", "transpose", 86, "us")(lambda: total_us(k.transpose, (1024, 1024)))

# ---------------------------------------------------------------- DMA
case("U001", "trn2", "dma", 1416, "ns", fitted=True)(
    lambda: stream(timed(k.one_load, (4, 2048)), "dma_load")["busy_ps"] / 1e3  # 4 partitions of 8 KiB
)


def curve(row_bytes):
    """Throughput of loads of 128 x row_bytes, one behind the other, relative to 32 KiB."""

    def rate(size):
        profile = timed(k.many_loads, (64, 128, size // 4))
        return size / profile.span_ps

    return rate(row_bytes) / rate(32768)


CURVE = (
    ("U005", 32, 0.013),
    ("U007", 128, 0.05),
    ("U008", 256, 0.103),
    ("U011", 2048, 0.813),
    ("U012", 4096, 0.966),
    ("U014", 16384, 0.99),
)
for id, row_bytes, measured in CURVE:
    case(id, "trn2", "dma curve", measured, "fraction")(lambda row_bytes=row_bytes: curve(row_bytes))


# ---------------------------------------------------------------- durations of instructions in public trn2 profiles
def duration_ns(call, *tiles, system="trn2"):
    profile = vtrn.trace(k.one_instruction(call, *tiles), zeros(1, 1), target=system).time(level="rule")
    step = profile.steps[-1]
    return float(step["end_ps"] - step["start_ps"]) / 1e3


S, Q = nl.sbuf, nl.psum
FORMS = [
    ("P-act-exp-512", 705, lambda y, x, b: nisa.activation(dst=y, op=nl.exp, data=x, bias=b),
     [((128, 512), nl.float32, S), ((128, 512), nl.float32, S), ((128, 1), nl.float32, S)]),
    ("P-act-copy-512", 585, lambda y, x: nisa.tensor_copy(dst=y, src=x, engine=nisa.scalar_engine),
     [((128, 512), nl.float32, S), ((128, 512), nl.float32, Q)]),
    ("P-act-copy-128", 265, lambda y, x: nisa.tensor_copy(dst=y, src=x, engine=nisa.scalar_engine),
     [((128, 128), nl.float32, S), ((128, 128), nl.float32, Q)]),
    ("P-vec-copy-512", 690, lambda y, x: nisa.tensor_copy(dst=y, src=x, engine=nisa.vector_engine),
     [((128, 512), nl.float32, S), ((128, 512), nl.float32, Q)]),
    ("P-vec-copy-128", 291, lambda y, x: nisa.tensor_copy(dst=y, src=x, engine=nisa.vector_engine),
     [((128, 128), nl.float32, S), ((128, 128), nl.float32, Q)]),
    ("P-vec-scalar-512", 481, lambda y, x, s: nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=s),
     [((128, 512), nl.float32, S), ((128, 512), nl.float32, S), ((128, 1), nl.float32, S)]),
    ("P-vec-scalar-128", 350, lambda y, x, s: nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=s),
     [((128, 128), nl.float32, S), ((128, 128), nl.float32, Q), ((128, 1), nl.float32, S)]),
    ("P-vec-reduce-512", 685, lambda y, x: nisa.tensor_reduce(dst=y, op=nl.add, data=x, axis=1),
     [((128, 1), nl.float32, S), ((128, 512), nl.float32, S)]),
    ("P-vec-reduce-4", 157, lambda y, x: nisa.tensor_reduce(dst=y, op=nl.add, data=x, axis=1),
     [((128, 1), nl.float32, S), ((128, 4), nl.float32, S)]),
    ("P-vec-recip-8", 202, lambda y, x: nisa.reciprocal(dst=y, data=x), [((128, 8), nl.float32, S), ((128, 8), nl.float32, S)]),
]  # fmt: skip
BF16 = nl.bfloat16


def matmul_form(columns, dtype):
    return lambda p, w, m: nisa.nc_matmul(dst=p, stationary=w, moving=m), [
        ((128, columns), nl.float32, Q), ((128, 128), dtype, S), ((128, columns), dtype, S)]  # fmt: skip


FORMS += [
    ("P-mm-bf16-512", 376, *matmul_form(512, BF16)),
    ("P-mm-bf16-128", 216, *matmul_form(128, BF16)),
]
for id, measured, call, tiles in FORMS:
    case(id, "trn2", "instruction", measured, "ns", fitted=True)(lambda call=call, tiles=tiles: duration_ns(call, *tiles))


# ---------------------------------------------------------------- public kernels, by path
RUNS = (  # totals and counters of public trn2 profiles: total us, tensor and vector active us, HBM bytes read and written
    ("baseline_bf16_s1024", 102.66984, 36.255778, 37.939522, 9273344, 8650752),
    ("baseline_bf16_s512", 54.276582, 14.188309, 13.093732, 2588672, 2228224),
    ("baseline_fp32_s1024", 116.923984, 47.579928, 38.163484, 10027008, 8912896),
    ("fused_bf16_s512", 36.351609, 15.147477, 11.373937, 491520, 131072),
    ("fused_fp32_s1024", 73.289052, 46.369921, 33.253071, 1638400, 524288),
    ("fused_fp32_s512", 38.091607, 17.369143, 11.976024, 851968, 262144),
)


def add_public(folder):
    """The attention kernels of a checkout of allenkchau/trainium-kernel-fusion (d709ddf) in the folder."""
    import importlib

    import ml_dtypes

    sys.path.insert(0, os.path.join(folder, "trainium-kernel-fusion"))
    for name, total, tensor, vector, read, written in RUNS:
        kind, dtype, size = name.split("_")
        kernel = getattr(importlib.import_module(f"kernels.{kind}.attention"), f"{kind}_attention")
        x = zeros(128, int(size[1:]), dtype=ml_dtypes.bfloat16 if dtype == "bf16" else F32)
        profile = functools.cache(lambda kernel=kernel, x=x: vtrn.trace(kernel, x, x, x, target="trn2").time())
        case(f"R-{name}", "trn2", "public attention", total, "us")(lambda p=profile: p().total_ps / 1e6)
        case(f"R-{name} tensor", "trn2", "active time", tensor, "us")(lambda p=profile: stream(p(), "tensor")["active_ps"] / 1e6)
        case(f"R-{name} vector", "trn2", "active time", vector, "us")(lambda p=profile: stream(p(), "vector")["active_ps"] / 1e6)
        case(f"R-{name} HBM read", "trn2", "counter", read, "B")(lambda p=profile: memory(p(), "hbm")["read_bytes"])
        case(f"R-{name} HBM write", "trn2", "counter", written, "B")(lambda p=profile: memory(p(), "hbm")["write_bytes"])


# ---------------------------------------------------------------- report
def rows_of(only, quick):
    for c in CASES:
        if (only and only not in c["id"] and only not in c["family"]) or (quick and c["slow"]):
            continue
        predicted = float(c["predict"]())
        yield {
            **{key: c[key] for key in ("id", "system", "family")},
            "predicted": predicted,
            **{key: c[key] for key in ("measured", "unit", "fitted")},
            "error": predicted / c["measured"] - 1,
        }


DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "accuracy.md")
BEGIN, END = "<!-- begin: written by ./dev bench accuracy --docs -->", "<!-- end -->"


def summary(rows):
    errors = [abs(row["error"]) for row in rows if not row["fitted"]]
    if not errors:
        return f"{len(rows)} cases"
    return (
        f"{len(rows)} cases; of the {len(errors)} that nothing was fitted to: mean error {100 * np.mean(errors):.1f} %, "
        f"worst {100 * max(errors):.1f} %."
    )


def write_docs(rows):
    with open(DOCS, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    lines = [
        summary(rows),
        "",
        "| case | chip | family | predicted | measured | unit | error | fitted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['id']} | {r['system']} | {r['family']} | {r['predicted']:.4g} | {r['measured']:.4g} | {r['unit']} "
            f"| {100 * r['error']:+.1f} % | {'yes' if r['fitted'] else ''} |"
        )
    with open(DOCS, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")
    parser.add_argument("--only", metavar="TEXT", help="cases whose id or family has this in it")
    parser.add_argument("--public", metavar="FOLDER", help="also run public kernels from checkouts in this folder (see RUNS)")
    parser.add_argument("--docs", action="store_true", help="also write the table of docs/accuracy.md")
    parser.add_argument("--quick", action="store_true", help="without cases of more than a few seconds")
    options = parser.parse_args()
    if options.public:
        add_public(options.public)
    rows = []
    print(f"{'id':32}{'system':8}{'family':18}{'predicted':>12}{'measured':>12} {'unit':10}{'error':>8}")
    for row in rows_of(options.only, options.quick):
        rows.append(row)
        mark = "  fitted" if row["fitted"] else ""
        print(f"{row['id']:32}{row['system']:8}{row['family']:18}{row['predicted']:12.4g}{row['measured']:12.4g} "
              f"{row['unit']:10}{100 * row['error']:7.1f}%{mark}", flush=True)  # fmt: skip
    print(summary(rows))
    if options.docs:
        write_docs(rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
