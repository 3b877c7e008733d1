"""pytest plugin of the nki-library adapter: supplies the missing modules and records every case's outcome.

Loaded with ``-p vtrn.nkilib.plugin`` in the main process and in every worker, before the checkout's conftest.
"""

import gc
import json
import os

import pytest

try:
    import resource
except ImportError:  # not on every system
    resource = None

from vtrn.nkilib import shims

ROOT = os.environ.get("VTRN_NKILIB_ROOT", "")
RESULTS = os.environ.get("VTRN_NKILIB_RESULTS", "")

if ROOT:
    shims.install(ROOT)


def _limit_memory(size_bytes):
    """Of this worker; what a case asks for beyond it is a MemoryError in that case."""
    if size_bytes > 0 and resource is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        soft = size_bytes if hard == resource.RLIM_INFINITY else min(size_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def family_of(nodeid: str) -> str:
    """``core/attention`` of ``.../test/integration/nkilib/core/attention/test_x.py::case``."""
    path = nodeid.partition("::")[0].replace("\\", "/")
    _, _, rest = path.partition("nkilib/")
    parts = (rest or path).split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def _reason(report) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return text.strip()[:600]


def pytest_sessionstart(session):
    if ROOT:
        shims.finish(ROOT)


def _recorded():
    """The cases that an earlier, interrupted run has recorded; a run without size skips takes up the skipped ones."""
    if not (RESULTS and os.environ.get("VTRN_NKILIB_RESUME") and os.path.exists(RESULTS)):
        return set()
    with open(RESULTS, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    again = {"skipped"} if os.environ.get("NKILIB_SIMULATION_RUN_ALL") == "1" else set()
    return {row["id"] for row in rows if row["outcome"] not in again}


def pytest_collection_modifyitems(config, items):
    """Leaves out what is not asked for: cases recorded already, or all but those named in a file."""
    if os.environ.get("VTRN_NKILIB_ONLY"):
        with open(os.environ["VTRN_NKILIB_ONLY"], encoding="utf-8") as file:
            only = set(json.load(file))
        out = [item for item in items if item.nodeid not in only]
    else:
        done = _recorded()
        out = [item for item in items if item.nodeid in done]
    if out:
        config.hook.pytest_deselected(items=out)
        gone = set(map(id, out))
        items[:] = [item for item in items if id(item) not in gone]


class _Recorder:
    """Appends one JSON line a case; lives in the main process only."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.seen = {}

    def record(self, nodeid, outcome, seconds, why):
        row = {"id": nodeid, "family": family_of(nodeid), "outcome": outcome, "seconds": round(seconds, 3), "why": why}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def pytest_runtest_logreport(self, report):
        seconds = self.seen.get(report.nodeid, 0.0) + report.duration
        self.seen[report.nodeid] = seconds
        if report.when == "call" or report.outcome != "passed":
            if report.when == "teardown" and report.outcome == "failed":
                return  # the call's outcome is recorded already
            self.record(report.nodeid, report.outcome, seconds, "" if report.passed else _reason(report))

    def pytest_collectreport(self, report):
        if report.failed:
            self.record(report.nodeid, "error", 0.0, _reason(report))


class _Cleaner:
    """A failure's frames hold the case's arrays in a cycle; they go before the next case, which may need the room."""

    failed = False

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def pytest_runtest_logfinish(self):
        if self.failed:
            gc.collect()
        self.failed = False


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_Cleaner(), "vtrn-nkilib-cleaner")
        _limit_memory(int(os.environ.get("VTRN_NKILIB_BYTES", "0")))
    if RESULTS and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(RESULTS), "vtrn-nkilib-recorder")
