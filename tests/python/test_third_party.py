"""Kernels written outside AWS: every case of tests/compat/third_party.py whose checkout is in the folder VTRN_PUBLIC."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compat"))

import third_party

FOLDER = pathlib.Path(os.environ.get("VTRN_PUBLIC", "/nonexistent"))
CASES = third_party.load_cases()


@pytest.mark.parametrize("identity", CASES)
def test_case(identity):
    made = CASES[identity]
    lack = third_party.missing(made, FOLDER)
    if lack:
        pytest.skip(f"VTRN_PUBLIC has no {', '.join(lack)}")
    status, note, _ = third_party.run_case(made, FOLDER)
    assert status == ("refused" if made.refused else "equal"), note
