"""Conversions of kern against NumPy and ml_dtypes: loads of every code, stores of all signs, exponents and roundings, at the
CPU level that VTRN_CPU names. Where the semantics differ on purpose the inputs are left out or mapped, each case below.

    dtypes_against_ml_dtypes.py PATH_OF_kern_convert
"""
import subprocess
import sys

import ml_dtypes
import numpy as np

FLOATS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8e4": ml_dtypes.float8_e4m3, "f8e4fn": ml_dtypes.float8_e4m3fn,
          "f8e5": ml_dtypes.float8_e5m2, "e8m0": ml_dtypes.float8_e8m0fnu}
INTS = {"i8": np.int8, "i16": np.int16, "u8": np.uint8, "u16": np.uint16}
MX = {"f8e5x4": (ml_dtypes.float8_e5m2, 57344.0), "f8e4fnx4": (ml_dtypes.float8_e4m3fn, 448.0),
      "f4x4": (ml_dtypes.float4_e2m1fn, 6.0)}
failures = []


def convert(direction, dtype, data):
    return subprocess.run([sys.argv[1], direction, dtype], input=data.tobytes(), stdout=subprocess.PIPE, check=True).stdout


def expect(what, inputs, got, want):
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        i = wrong[0]
        failures.append(f"{what}: {len(wrong)} differ, first of {inputs[i]!r}: {got[i]!r}, expected {want[i]!r}")


def canonical(bits):
    """fp32 bits with every NaN made one: payloads of loads are not compared here."""
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, (bits & 0x80000000) | 0x7FC00000, bits)


def check_loads():
    for name, kind in {**FLOATS, **INTS}.items():
        size = np.dtype(kind).itemsize
        codes = np.arange(1 << 8 * size, dtype=np.uint64).astype(f"u{size}")
        want = codes.view(kind).astype(np.float32).view(np.uint32)
        if name == "e8m0":  # the library's NaN has a sign of its own
            want = want & 0x7FFFFFFF
        got = np.frombuffer(convert("load", name, codes), np.uint32)
        expect(f"load {name}", codes, canonical(got), canonical(want))
    for name in ("i32", "u32"):
        codes = np.random.default_rng(1).integers(0, 1 << 32, 200000, dtype=np.uint64).astype(np.uint32) >> np.arange(200000) % 32
        codes = codes.astype(np.uint32)
        want = codes.view(name.replace("i", "int").replace("u", "uint")).astype(np.float32)
        expect(f"load {name}", codes, np.frombuffer(convert("load", name, codes), np.float32), want)


def roundings():
    upper = np.arange(1 << 19, dtype=np.uint32) << 13
    low = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    return (upper[:, None] | low[None, :]).ravel().view(np.float32)


def check_stores():
    x = roundings()
    with np.errstate(all="ignore"):
        for name, kind in FLOATS.items():
            values = x
            if name == "f8e4fn":  # beyond the range the library gives NaN, the chip the largest value
                values = np.where(np.abs(x) > 448, np.copysign(np.float32(448), x), x).astype(np.float32)
                values = np.where(np.isnan(x), x, values)
            if name == "e8m0":  # the library has no code for 0 and rounds up all values below 2^-126
                x_fits = x[(x >= np.float32(2.0**-126)) & (x < np.float32(1.5 * 2.0**127))]
                want = x_fits.astype(kind).view(np.uint8)
                expect("store e8m0", x_fits, np.frombuffer(convert("store", name, x_fits), np.uint8), want)
                continue
            bits = f"u{np.dtype(kind).itemsize}"
            got, want = np.frombuffer(convert("store", name, x), bits), values.astype(kind).view(bits)
            is_nan = np.isnan(x)  # NumPy keeps payloads: NaNs are checked to be NaNs, with their sign
            expect(f"store {name}", x[~is_nan], got[~is_nan], want[~is_nan])
            back = got.view(kind).astype(np.float32)
            if not (np.isnan(back[is_nan]).all() and (np.signbit(back[is_nan]) == np.signbit(x[is_nan])).all()):
                failures.append(f"store {name}: a NaN did not stay one")
        for name, kind in {**INTS, "i32": np.int32, "u32": np.uint32}.items():
            info = np.iinfo(kind)
            rounded = np.rint(np.nan_to_num(x, nan=0.0).astype(np.float64))
            want = np.clip(rounded, info.min, info.max).astype(kind)
            expect(f"store {name}", x, np.frombuffer(convert("store", name, x), kind), want)
        expect("store b8", x, np.frombuffer(convert("store", "b8", x), np.uint8), (x != 0).astype(np.uint8))


def check_mx():
    x = roundings()[::5]
    x = x[: len(x) // 4 * 4]
    with np.errstate(all="ignore"):
        for name, (kind, largest) in MX.items():
            width = 4 if name == "f4x4" else 8
            codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
            packed = codes if width == 4 else np.stack([codes, codes[::-1]], axis=1).ravel()
            lanes = ((codes[:, None] >> np.arange(0, 16, 4)) & 15).astype(np.uint8) if width == 4 else packed.view(np.uint8)
            want = lanes.ravel().view(kind).astype(np.float32)
            got = np.frombuffer(convert("mx", name, packed), np.float32)
            expect(f"mx {name}", lanes.ravel(), canonical(got.view(np.uint32)), canonical(want.view(np.uint32)))

            ordinary = ~np.isnan(x) if name == "f4x4" else np.full(len(x), True)  # e2m1 has no NaN
            values = np.where(np.isnan(x), x, np.clip(x, -largest, largest)).astype(np.float32)
            want = values.astype(kind).view(np.uint8)
            got = np.frombuffer(convert("mx_store", name, x), np.uint8)
            if width == 4:
                got = np.stack([got & 15, got >> 4], axis=1).ravel()
            expect(f"mx_store {name}", x[ordinary], got[ordinary], want[ordinary])


check_loads()
check_stores()
check_mx()
print("\n".join(failures) or "same as ml_dtypes")
sys.exit(len(failures) > 0)
