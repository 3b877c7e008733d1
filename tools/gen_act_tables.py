#!/usr/bin/env python3
"""Fits the polynomials of kern's activation functions and writes src/kern/act_tables.c and act_poly.h.

    python3 tools/gen_act_tables.py src/kern          (needs mpmath; the results are checked in)

Tables. A function of a = |x| is cut into 16 pieces of one width; piece p holds a polynomial in t = a - p * width that
is fitted for relative error. Coefficients become fp32 one after the other, lowest first, and the rest is fitted again
each time, so that the rounding of a low coefficient is made up for by the higher ones.
Polynomials. What is evaluated in double: fitted for relative error in 50 digits and rounded to double.
"""
import os
import struct
import sys
from typing import Callable, NamedTuple

import mpmath as mp

mp.mp.dps = 50
PIECES = 16
SQRT2, SQRT_2_PI = mp.sqrt(2), mp.sqrt(2 / mp.pi)
GELU_CUBIC, GELU_SIGMOID = mp.mpf("0.044715"), mp.mpf("1.702")


def upper(a):
    """P(normal variate > a)."""
    return mp.erfc(a / SQRT2) / 2


def sigmoid_of_minus(a):
    return 1 / (1 + mp.e ** a)


class Table(NamedTuple):
    function: Callable  # of a >= 0
    width: mp.mpf  # of a piece
    degree: int
    kind: str  # "positive", "zero": the function is 0 at 0, "odd": and odd
    doc: str
    # Where the table ends, in 32nds of a piece from the middle of the last one: the last piece is the hardest to fit. At
    # most 15, so that rounding cannot reach piece 16.
    end: int = 15

    @property
    def limit(self):
        return self.width * (PIECES - 1 + mp.mpf(self.end) / 32)


TABLES = {
    "sigmoid": Table(sigmoid_of_minus, mp.mpf(3) / 4, 6, "positive", "sigmoid(-a)"),
    "silu": Table(lambda a: a * sigmoid_of_minus(a), mp.mpf(1) / 2, 5, "zero", "a * sigmoid(-a)"),
    "gelu": Table(lambda a: a * upper(a), mp.mpf(1) / 4, 5, "zero", "a * erfc(a / sqrt 2) / 2", end=10),
    "gelu_tanh": Table(
        lambda a: a * sigmoid_of_minus(2 * SQRT_2_PI * (a + GELU_CUBIC * a ** 3)), mp.mpf(1) / 4, 5, "zero",
        "a * sigmoid(-2 sqrt(2/pi) (a + 0.044715 a^3))", end=6),
    "gelu_sigmoid": Table(
        lambda a: a * sigmoid_of_minus(GELU_SIGMOID * a), mp.mpf(3) / 8, 6, "zero", "a * sigmoid(-1.702 a)"),
    "softplus": Table(lambda a: mp.log1p(mp.e ** -a), mp.mpf(3) / 4, 6, "positive", "log(1 + exp(-a))"),
    "tanh": Table(mp.tanh, mp.mpf(151) / 256, 7, "odd", "tanh(a)"),
    "erf": Table(mp.erf, mp.mpf(33) / 128, 6, "odd", "erf(a)"),
}


def to_f32(x):
    """Nearest fp32 (normal range only), as an mpf."""
    if x == 0:
        return mp.mpf(0)
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, 24)), exponent - 24)


def fit(target, weight, low, high, first, last, nodes=None, step=1):
    """Coefficients first, first + step, .. last of the polynomial that is nearest to target(t) * weight(t) on [low, high]:
    least squares at Chebyshev points, which is within a small factor of the best maximum error."""
    count = (last - first) // step + 1
    nodes = nodes or 6 * (last + 2)
    rows, right = mp.matrix(nodes, count), mp.matrix(nodes, 1)
    for i in range(nodes):
        t = (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * nodes))
        w = weight(t) / mp.sqrt(mp.sqrt(1 - mp.cos(mp.pi * (2 * i + 1) / (2 * nodes)) ** 2))
        for k in range(count):
            rows[i, k] = t ** (first + k * step) * w
        right[i] = target(t) * w
    solved = mp.lu_solve(rows, right)
    return [solved[k] for k in range(count)]


def slope_rest(function):
    """What fp32 leaves of the slope at 0. For erf it is half a unit in the last place, too much to leave out."""
    slope = mp.diff(function, 0)
    return mp.mpf(0) if abs(slope) < 1e-30 else to_f32(slope - to_f32(slope))


def fit_f32(table, centre, low, high, rest_slope):
    """The piece low <= t <= high around `centre`, coefficients rounded to fp32. Around a zero the first one is the slope, so
    that tiny arguments come out right, and an odd function has odd powers only."""
    at_zero = centre == 0 and table.kind != "positive"
    odd = at_zero and table.kind == "odd"
    done = [mp.mpf(0), to_f32(mp.diff(table.function, 0))] if at_zero else []
    while len(done) <= table.degree:
        if odd and len(done) % 2 == 0:
            done.append(mp.mpf(0))
            continue

        def rest(t, done=tuple(done)):
            return table.function(centre + t) - rest_slope * t - sum(c * t ** k for k, c in enumerate(done))
        fitted = fit(rest, lambda t: 1 / table.function(centre + t), low, high, len(done), table.degree, step=2 if odd else 1)
        done.append(to_f32(fitted[0]))
    return done


def worst(function, centre, low, high, coefficients, rest_slope):
    error = mp.mpf(0)
    for i in range(1, 41):
        t = low + (high - low) * i / 40
        exact = function(centre + t)
        error = max(error, abs((sum(c * t ** k for k, c in enumerate(coefficients)) + rest_slope * t) / exact - 1))
    return error


def f32_text(x):
    if x == 0:
        return "0"
    return float(x).hex().replace("0000000p", "p") + "f"


def double_text(x):
    text = float(x).hex()
    return "(%s)" % text if x < 0 else text


def table_text(name, table, err):
    rows, error = [], 0
    width, degree = table.width, table.degree
    rest_slope = slope_rest(table.function) if table.kind == "odd" else mp.mpf(0)
    for piece in range(PIECES):
        centre = piece * width
        low = mp.mpf(0) if piece == 0 else -width / 2
        high = table.limit - centre if piece == PIECES - 1 else width / 2
        coefficients = fit_f32(table, centre, low, high, rest_slope)
        error = max(error, worst(table.function, centre, low, high, coefficients, rest_slope))
        rows.append(coefficients)
    print("%-14s width %-10s limit %-10s error 2^%.2f" % (
        name, float(width), float(table.limit), mp.log(error, 2)), file=err)
    out = ["/* %s, relative error of the polynomials 2^%.1f */" % (table.doc, mp.log(error, 2)),
           "const struct act_table vtrn_act_table_%s = {" % name,
           "    .width = %s, .inverse = %s, .limit = %s," % (
               f32_text(to_f32(width)), f32_text(to_f32(1 / width)), f32_text(to_f32(table.limit))),
           "    .degree = %d," % degree,
           "    .rest_slope = %s," % f32_text(rest_slope),
           "    .term = {"]
    for k in range(degree + 1):
        texts = [f32_text(row[k]) for row in rows]
        lines = [", ".join(texts[i:i + 6]) for i in range(0, PIECES, 6)]
        out.append("        { /* t^%d */\n            " % k + ",\n            ".join(lines) + "},")
    return "\n".join(out + ["    },", "};"])


def double_array(name, doc, coefficients, err, error):
    print("%-14s degree %d error 2^%.1f" % (name, len(coefficients) - 1, mp.log(error, 2)), file=err)
    lines = ["/* %s; relative error 2^%.1f. Lowest power first. */" % (doc, mp.log(error, 2)),
             "enum { ACT_%s_DEGREE = %d };" % (name.upper(), len(coefficients) - 1),
             "static const double act_%s[ACT_%s_DEGREE + 1] = {" % (name, name.upper())]
    text = [float(c).hex() for c in coefficients]
    for i in range(0, len(text), 4):
        lines.append("    " + ", ".join(text[i:i + 4]) + ",")
    return "\n".join(lines + ["};"])


def fit_double(name, doc, function, low, high, degree, err):
    """function is divided out so that it has no zero on [low, high]."""
    solved = fit(function, lambda t: 1 / function(t), low, high, 0, degree, 4 * degree + 20)
    rounded = [mp.mpf(float(c)) for c in solved]
    error = mp.mpf(0)
    for i in range(201):
        t = low + (high - low) * i / 200
        error = max(error, abs(sum(c * t ** k for k, c in enumerate(rounded)) / function(t) - 1))
    return double_array(name, doc, rounded, err, error)


def taylor_at_root(function, root, degree):
    """function(root + t) / t as a power series in t."""
    series = mp.taylor(function, root, degree + 1)
    return series[1:]


def smooth(function, at_zero):
    """function(t) with its limit at 0, where the formula is 0/0."""
    return lambda t: at_zero if t == 0 else function(t)


def exp_text(err):
    """exp(x) = 2^k * 2^(j/16) * (1 + r + r^2 (c2 + c3 r)), x = (16 k + j) * ln(2)/16 + r."""
    step = mp.log(2) / 16
    high = mp.ldexp(mp.nint(mp.ldexp(step, 17)), -17)  # n * high is exact, and so is x - n * high
    half = step / 2 * mp.mpf(1.0001)
    c2 = to_f32(fit(lambda r: mp.e ** r - 1 - r, lambda r: 1, -half, half, 2, 3)[0])
    c3 = to_f32(fit(lambda r: mp.e ** r - 1 - r - c2 * r * r, lambda r: 1, -half, half, 3, 3)[0])
    error = max(abs((1 + r + c2 * r ** 2 + c3 * r ** 3) / mp.e ** r - 1) for r in mp.linspace(-half, half, 101))
    print("exp            fp32 polynomial error 2^%.1f" % mp.log(error, 2), file=err)
    lines = ["/* exp in fp32: x = n * ln(2)/16 + r, exp(x) = 2^(n/16) * (1 + r + r^2 (C2 + C3 r)), relative error of the",
             " * polynomial 2^%.1f. ln(2)/16 is STEP_HIGH + STEP_LOW; n * STEP_HIGH is exact. */" % mp.log(error, 2)]
    for name, value in (("PER_STEP", 1 / step), ("STEP_HIGH", high), ("STEP_LOW", step - high), ("C2", c2), ("C3", c3)):
        lines.append("#define ACT_EXP_%s %s" % (name, f32_text(to_f32(value))))
    lines.append("/* 2^(j/16), j = 0..15 */\n#define ACT_EXP_TABLE \\")
    powers = [f32_text(to_f32(mp.mpf(2) ** (mp.mpf(j) / 16))) for j in range(16)]
    lines += ["    %s, \\" % ", ".join(powers[j:j + 4]) for j in (0, 4, 8)] + ["    " + ", ".join(powers[12:])]
    return "\n".join(lines)


def constants_text():
    ln2 = mp.log(2)
    high = mp.ldexp(mp.nint(mp.ldexp(ln2, 40)), -40)  # n * high is exact for |n| < 2^12
    linear = 2 * SQRT_2_PI
    values = [
        ("WIDE_EXP_RANGE", "200.0", "beyond, exp is 0 or inf in fp32"),
        ("WIDE_NORMAL_RANGE", "15.0", "beyond, the normal distribution's tail is 0 in fp32"),
        ("WIDE_ROOT_RANGE", "0x1p-4", "around the zeros of the slopes"),
        ("WIDE_ROUND", "0x1.8p52", "what is added so that the low bits of the sum are the nearest integer"),
        ("WIDE_PER_LN2", 1 / ln2, "1 / ln 2"), ("WIDE_LN2", ln2, "ln 2"),
        ("WIDE_LN2_HIGH", high, "ln 2, of which times n < 2^12 is exact"), ("WIDE_LN2_LOW", ln2 - high, "and the rest"),
        ("WIDE_PI", mp.pi, "pi"),
        ("WIDE_PER_SQRT_2PI", 1 / mp.sqrt(2 * mp.pi), "1 / sqrt(2 pi)"),
        ("WIDE_2_PER_SQRT_PI", 2 / mp.sqrt(mp.pi), "2 / sqrt(pi)"),
        ("WIDE_GELU_LINEAR", linear, "2 sqrt(2/pi)"),
        ("WIDE_GELU_CUBIC", linear * GELU_CUBIC, "2 sqrt(2/pi) * 0.044715"),
        ("WIDE_GELU_SIGMOID", "1.702", "of gelu_apprx_sigmoid"),
        ("WIDE_SQRT_HALF_BITS", "UINT64_C(0x%x)" % struct.unpack("<Q", struct.pack("<d", float(mp.sqrt(0.5))))[0], "sqrt(1/2)"),
        ("WIDE_ONE_BITS", "UINT64_C(0x3ff0000000000000)", "1.0"),
        ("WIDE_2P52_BITS", "UINT64_C(0x4330000000000000)", "2^52"),
        ("WIDE_MANTISSA", "UINT64_C(0x000fffffffffffff)", "its field"),
    ]
    return "\n".join("#define %s %s /* %s */" % (name, v if isinstance(v, str) else double_text(v), doc)
                     for name, v, doc in values)


def poly_header(err):
    sqrt_half = mp.sqrt(mp.mpf(1) / 2)
    mills_centre = mp.mpf(3)
    mills_end = mp.mpf(15)

    def mills(u):  # a = 3 (1 + u) / (1 - u)
        a = mills_centre * (1 + u) / (1 - u)
        return upper(a) * mp.e ** (a * a / 2)

    def gelu_slope(x):
        return upper(-x) + x * mp.e ** (-x * x / 2) / mp.sqrt(2 * mp.pi)

    def silu_slope(x):
        s = sigmoid_of_minus(-x)
        return s * (1 + x * (1 - s))

    exp_terms = [1 / mp.factorial(k) for k in range(12)]
    parts = [
        constants_text(),
        exp_text(err),
        double_array("exp", "exp(r), |r| <= ln(2)/2: 1/k!", [mp.mpf(float(c)) for c in exp_terms], err,
                     abs(sum(c * (mp.log(2) / 2) ** k for k, c in enumerate(exp_terms)) / SQRT2 - 1)),
        fit_double("log", "log(1 + f) / f for sqrt(1/2) <= 1 + f <= sqrt(2)",
                   smooth(lambda f: mp.log1p(f) / f, mp.mpf(1)), sqrt_half - 1, SQRT2 - 1, 17, err),
        fit_double("sin", "sin(y) / y as a polynomial of y^2, |y| <= pi/2",
                   smooth(lambda z: mp.sin(mp.sqrt(z)) / mp.sqrt(z), mp.mpf(1)), mp.mpf(0), (mp.pi / 2) ** 2, 7, err),
        fit_double("atan", "atan(y) / y as a polynomial of y^2, |y| <= 1",
                   smooth(lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z), mp.mpf(1)), mp.mpf(0), mp.mpf(1), 14, err),
        fit_double("mills", "exp(a^2/2) * P(normal variate > a) as a polynomial of (a - 3) / (a + 3), a <= 15",
                   mills, mp.mpf(-1), (mills_end - mills_centre) / (mills_end + mills_centre), 18, err),
    ]
    for name, slope, start in (("gelu_root", gelu_slope, -0.75), ("silu_root", silu_slope, -1.28)):
        root = mp.findroot(slope, start)
        series = taylor_at_root(slope, root, 9)
        error = mp.mpf(0)
        for i in range(-20, 21):
            if i:
                t = mp.mpf(i) / 20 / 16
                error = max(error, abs(sum(float(c) * t ** (k + 1) for k, c in enumerate(series)) / slope(root + t) - 1))
        parts.append("#define ACT_%s %s /* where the slope is 0 */" % (name.upper(), double_text(root)))
        parts.append(double_array(name, "slope / (x - root) as a polynomial of x - root, |x - root| <= 1/16",
                                  series, err, error))
    return "\n\n".join(parts)


HEAD = "/* Written by tools/gen_act_tables.py; do not edit. %s */\n"


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "act_poly.h"), "w") as out:
        out.write(HEAD % "Constants and polynomials of functions, for every level.")
        out.write("#ifndef VTRN_ACT_POLY_H\n#define VTRN_ACT_POLY_H\n\n" + poly_header(sys.stderr) + "\n\n#endif\n")
    with open(os.path.join(folder, "act_tables.c"), "w") as out:
        out.write(HEAD % "Piecewise polynomials in fp32, for every level.")
        out.write('#include "kern/act_tables.h"\n')
        for name, table in TABLES.items():
            out.write("\n" + table_text(name, table, sys.stderr) + "\n")


main()
