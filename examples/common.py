"""What the examples share: timing, comparing, one line of result. Nothing here is needed to write a kernel."""

import dataclasses
import importlib.util
import time

import numpy as np
import vtrn

HAS_TORCH = importlib.util.find_spec("torch") is not None


@dataclasses.dataclass
class Outcome:
    name: str
    size: str
    instructions: int
    error: float  # largest difference to the reference, as a share of the largest value of the reference
    limit: float  # of the error
    seconds: float
    native: str  # what it is timed against
    native_seconds: float

    @property
    def good(self) -> bool:
        return self.error <= self.limit

    def __str__(self):
        return (
            f"{self.name} {self.size}: {self.instructions:,} instructions in {1e3 * self.seconds:.1f} ms; "
            f"{self.native} {1e3 * self.native_seconds:.1f} ms; error {self.error:.1e} (limit {self.limit:.0e}): "
            f"{'ok' if self.good else 'WRONG'}"
        )


def best_time(call, turns=3):
    """The call's result and its shortest time; the first turn also warms caches and memory."""
    best = float("inf")
    for _ in range(turns):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


def largest_error(result, reference) -> float:
    result, reference = np.asarray(result, np.float64), np.asarray(reference, np.float64)
    assert result.shape == reference.shape, f"{result.shape} is not {reference.shape}"
    error = np.abs(result - reference).max() / np.abs(reference).max()
    return float(error) if np.isfinite(error) else float("inf")


def outcome(name, size, kernel_call, reference, limit, native, native_call) -> Outcome:
    """Runs the kernel and the native library, compares and times them."""
    result, seconds = best_time(kernel_call)
    instructions = vtrn.last_counters()["instructions"]
    _, native_seconds = best_time(native_call)
    return Outcome(name, size, instructions, largest_error(result, reference), limit, seconds, native, native_seconds)


def main(run):
    """Of each example: run it, say how it went, fail when it is wrong."""
    result = run()
    print(result)
    raise SystemExit(0 if result.good else 1)
