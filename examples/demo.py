"""All examples, one after the other, and a table. `./dev demo` ends with this."""

import attention
import mamba_scan
import matmul_bf16
import matmul_mxfp8
import vtrn

EXAMPLES = (matmul_bf16, attention, matmul_mxfp8, mamba_scan)
HEAD = ("kernel", "size", "instructions", "error", "limit", "vtrn", "native", "native library", "ratio", "")


def row(o):
    return (
        o.name,
        o.size,
        f"{o.instructions:,}",
        f"{o.error:.1e}",
        f"{o.limit:.1e}",
        f"{1e3 * o.seconds:.1f} ms",
        f"{1e3 * o.native_seconds:.1f} ms",
        o.native,
        f"{o.native_seconds / o.seconds:.2f}x",
        "ok" if o.good else "WRONG",
    )


def main() -> int:
    outcomes = []
    for example in EXAMPLES:
        print(f"running examples/{example.__name__}.py ...", flush=True)
        outcomes.append(example.run())
    rows = [HEAD, *(row(o) for o in outcomes)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEAD))]
    left = {0, 1, 7, 9}  # words; numbers are aligned on their right
    print()
    for cells in rows:
        print(
            "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))).rstrip()
        )
    print("\nerror: largest difference to the reference in NumPy, as a share of its largest value.")
    print("ratio: native time / vtrn time on this host; above 1 vtrn is faster than the native library.")
    print(
        f"target: {vtrn.settings.target or 'trn3 unless the environment names another'}; "
        "each kernel ran three times, the best counts."
    )
    wrong = [o.name for o in outcomes if not o.good]
    print(
        f"\n{len(outcomes) - len(wrong)} of {len(outcomes)} kernels agree with their references"
        + (f"; WRONG: {', '.join(wrong)}" if wrong else "")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
