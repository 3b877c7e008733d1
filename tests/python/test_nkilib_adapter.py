"""The nki-library adapter's own parts: source repair, stand-ins for absent clients, the result table."""

import importlib
import json
import sys

import numpy as np
import pytest
import vtrn.nki.isa as nisa
import vtrn.nki.language as nl
from vtrn.nkilib import __main__ as adapter
from vtrn.nkilib import frontend, neuron_dtypes, plugin, shims

BROKEN = b'def f():\n    """Doc.\n\n    modes:\n    - one\n    """\n\n    modes:\n    - one\n    """\n    return 1\n'


def test_repeated_docstring_tail_is_blanked_and_lines_keep_their_numbers():
    repaired = shims.repair_docstring_tail(BROKEN)
    scope = {}
    exec(compile(repaired, "x", "exec"), scope)
    assert scope["f"]() == 1
    assert repaired.count(b"\n") == BROKEN.count(b"\n")


@pytest.mark.parametrize("source", [b"x = 1\n", b"def f(:\n", b'"""a"""\nsome words\n"""\n'])
def test_other_sources_are_left_alone(source):
    assert shims.repair_docstring_tail(source) == source


def test_client_stand_in_gives_mocks_and_real_exception_types():
    finder = shims._ClientFinder({"absent_cloud_client"})
    sys.meta_path.append(finder)
    try:
        import absent_cloud_client.exceptions as exceptions

        with pytest.raises(exceptions.ClientError):
            raise exceptions.ClientError("gone")
        assert exceptions.anything.call().result is not None
        with pytest.raises(ImportError):
            import another_absent_module  # noqa: F401
    finally:
        sys.meta_path.remove(finder)


@pytest.mark.parametrize(
    "nodeid, family",
    [
        ("test/integration/nkilib/core/attention/test_x.py::T::t[a/b]", "core/attention"),
        ("test/integration/nkilib/core/moe/moe_tkg/test_x.py::t", "core/moe"),
        ("test/unit/test_x.py::t", "test/unit"),
    ],
)
def test_family_is_the_folder_of_the_case(nodeid, family):
    assert plugin.family_of(nodeid) == family


def test_summary_counts_the_last_record_of_a_case(tmp_path):
    rows = [
        {"id": "a", "family": "core/x", "outcome": "failed", "seconds": 1, "why": "E: bad\nmore"},
        {"id": "a", "family": "core/x", "outcome": "passed", "seconds": 1, "why": ""},
        {"id": "b", "family": "core/x", "outcome": "error", "seconds": 0, "why": "ImportError: y"},
        {"id": "c", "family": "core/y", "outcome": "skipped", "seconds": 0, "why": "too large"},
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    families, reasons = adapter._summary(path)
    assert families["core/x"] == {"passed": 1, "failed": 1}
    assert families["core/y"] == {"skipped": 1}
    assert dict(reasons) == {"ImportError: y": 1}


def test_a_path_that_is_no_checkout_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        adapter.main([str(tmp_path)])
    assert stopped.value.code == 2
    assert "not an nki-library checkout" in capsys.readouterr().err


def test_static_cast_names_its_parameters_as_the_package_does():
    assert neuron_dtypes.static_cast(np.float32([1.5]), dtype="bfloat16").dtype.name == "bfloat16"
    assert neuron_dtypes.finfo("float8_e4m3").dtype.itemsize == neuron_dtypes.sizeinbytes("float8_e4m3") == 1


def test_an_aliased_input_is_found_by_its_plain_name():
    inputs = shims._Inputs({"x": 1, "y.must_alias_input": 2})
    assert (inputs["x"], inputs["y"], inputs["y.must_alias_input"]) == (1, 2, 2)
    for absent in ("z", "x.must_alias_input"):
        with pytest.raises(KeyError, match=absent):
            inputs[absent]


def test_front_end_records_a_kernel_and_passes_its_exceptions_on(capsys):
    def kernel(x, fail):
        assert not fail, "this kernel fails"
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    compile_kernel = frontend.ParserFrontend().compile
    x = np.ones((4, 4), np.float32)
    result = compile_kernel(kernel, inputs={"x": x, "fail": False}, target="trn2", lnc=1, artifacts_dir="unused")
    result.module.operation.print(enable_debug_info=True)
    assert "dma_copy" in capsys.readouterr().out and result.program.target == "trn2"
    with pytest.raises(AssertionError, match="this kernel fails"):
        compile_kernel(kernel, inputs={"x": x, "fail": True}, target="trn2", lnc=1)


def test_a_moved_package_is_found_under_its_old_name(tmp_path, monkeypatch):
    package = tmp_path / "nkilib" / "experimental" / "collectives"
    package.mkdir(parents=True)
    (package / "moved.py").write_text("value = 7\n")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [shims._MovedFinder(), *sys.meta_path])
    try:
        old = importlib.import_module("nkilib.experimental.subkernels.moved")
        assert old.value == 7 and old is importlib.import_module("nkilib.experimental.collectives.moved")
        with pytest.raises(ImportError):
            importlib.import_module("nkilib.experimental.subkernels.absent")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "nkilib"]:
            del sys.modules[name]
