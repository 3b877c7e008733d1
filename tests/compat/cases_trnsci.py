"""The trnsci libraries (FFT, sparse, tensor contraction, solver, random numbers): their own simulator suites, and their kernels."""

from checkout import case, normal

SUITE = ("tests", "-m", "nki_simulator")
OWN = "its own test suite"


def _on(name):
    return {f"{name}_USE_SIMULATOR": "1", f"{name}_REQUIRE_NKI": "1"}


@case("trnsci/trnfft", "trnfft/nki/", OWN, kernels=8, needs=("torch", "scipy"))
def complex_products_and_fft(at):
    """complex products (fp32, bf16), linear, multiply; FFT stages: radix 2, compensated, radix 4 and 8"""
    at.suite(*SUITE, passed=16, environment=_on("TRNFFT"))


@case("trnsci/trnsolver", "trnsolver/nki/dispatch.py", OWN, kernels=2, needs=("torch",))
def householder_tridiagonalization(at):
    """matrix-vector product and rank-2 update of Householder's method"""
    at.suite(*SUITE, passed=28, environment=_on("TRNSOLVER"))


@case("trnsci/trnrand", "trnrand/nki/dispatch.py", OWN, kernels=8, needs=("torch", "scipy"))
def random_numbers(at):
    """Threefry, Box-Muller, Philox: uniform, normal, exponential, by tile and streaming

    Four tests of Philox are expected to fail, there and here: sums of uint32 lose bits above 2^24, on the chip too.
    """
    at.suite(*SUITE, passed=64, environment=_on("TRNRAND"))


@case("trnsci/trntensor", "trntensor/nki/_kernels.py", OWN, kernels=3, needs=("torch",))
def contractions(at):
    """product, batched product, transform of integrals to molecular orbitals"""
    at.suite("tests/test_nki_sim.py", "-k", "not demo_shape", passed=5, environment=_on("TRNTENSOR"))


@case("trnsci/trntensor", "trntensor/nki/_kernels.py", refused="reshape: dimension 0 (partitions) must stay 19, not 1")
def mp2_energy(at):
    """correlation energy (MP2): turns a column into a row by reshape, which moves data across partitions"""
    module = at.module()
    module.mp2_energy_kernel(normal(1, 5, 19, 72), normal(2, 5, 1), normal(3, 19, 1))


@case("trnsci/trnsparse", "trnsparse/nki/kernels.py", OWN, kernels=7, needs=("torch", "scipy"))
def sparse_products_and_attention(at):
    """block-sparse, dense and screened products; block-sparse attention, forward (2 passes) and backward (2)"""
    at.suite("tests/test_nki_sim.py", "-k", "not backward_head_dim_256", passed=12, environment=_on("TRNSPARSE"))
