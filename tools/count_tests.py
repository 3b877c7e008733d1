"""The closing line of ./dev test: what Meson's log and pytest's report counted, together.

    count_tests.py testlog.json pytest.xml      either may be missing: that part did not run

Names what failed, then prints "N passed, N failed, N skipped" alone on the last line. Exit code 1 when a test failed or none ran.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def meson_results(path: pathlib.Path):
    """(name, outcome) of each test executable; Meson writes one JSON object a line."""
    for line in path.read_text().splitlines():
        test = json.loads(line)
        outcome = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
        yield test["name"], outcome


def pytest_results(path: pathlib.Path):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        children = {child.tag for child in case}
        outcome = "failed" if children & {"failure", "error"} else "skipped" if "skipped" in children else "passed"
        yield f"{case.get('classname')}.{case.get('name')}", outcome


def main() -> int:
    meson_log, pytest_report = map(pathlib.Path, sys.argv[1:3])
    results = list(meson_results(meson_log)) if meson_log.exists() else []
    results += pytest_results(pytest_report) if pytest_report.exists() else []
    count = {outcome: sum(o == outcome for _, o in results) for outcome in ("passed", "failed", "skipped")}
    for name, outcome in results:
        if outcome == "failed":
            print(f"failed: {name}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count), flush=True)
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
