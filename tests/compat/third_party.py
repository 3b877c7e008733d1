"""Kernels that people outside AWS have published, unmodified, on vtrn.

    python tests/compat/third_party.py FOLDER [--only WORD] [--markdown]

FOLDER holds checkouts as FOLDER/OWNER+NAME (git clone https://github.com/OWNER/NAME OWNER+NAME). Every case whose repository is
there runs in a process of its own under ``vtrn run`` and is compared with a reference. Nothing of the checkouts is part of this
project. Results: *equal* to the reference; *refused*: the kernel is wrong or illegal on the chip, and vtrn's error names it.
"""

import argparse
import importlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from checkout import CASES, Checkout, doc_line, folder_of  # noqa: E402

MARK = "third_party result: "


def load_cases():
    """All cases by name; each module of cases_*.py adds its own."""
    for file in sorted(HERE.glob("cases_*.py")):
        importlib.import_module(file.stem)
    return CASES


def missing(made, folder):
    """What the case needs and is not there."""
    wanted = [made.repository, *(name for name in made.needs if "/" in name)]
    absent = [name for name in wanted if not folder_of(folder, name).is_dir()]
    return absent + [name for name in made.needs if "/" not in name and importlib.util.find_spec(name) is None]


def commit_of(folder, repository):
    command = ["git", "-C", str(folder_of(folder, repository)), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "?"


def run_here(made, folder):
    """The child's part: runs one case and prints its result as the last line."""
    checkout = Checkout(folder, made)
    made.run(checkout)
    assert checkout.compared, "the case compared nothing"
    print(MARK + json.dumps({"compared": checkout.compared, "worst": checkout.worst}))


def run_case(made, folder, timeout=900):
    """(status, note, seconds): equal, refused or failed."""
    command = [sys.executable, "-m", "vtrn", "run", "--target", made.target, str(HERE / "third_party.py"), str(folder)]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    start = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--one", made.identity], env=environment, capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return "failed", f"no end after {timeout} s", timeout
    seconds = time.monotonic() - start
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if ": " in line and not line.startswith(" ")), lines[-1] if lines else "")
    result = next((line for line in reversed(done.stdout.splitlines()) if line.startswith(MARK)), None)
    if made.refused:
        named = done.returncode != 0 and made.refused in done.stderr
        return ("refused" if named else "failed"), said if done.returncode else "not refused", seconds
    if done.returncode or result is None:
        return "failed", said, seconds
    return "equal", "", seconds


def print_table(rows, markdown, folder):
    if markdown:
        commits = {made.repository: commit_of(folder, made.repository) for made, *_ in rows}
        print(
            "| source | kernels | reference | command `third_party.py FOLDER --only` | target | result |\n|---|---|---|---|---|---|"
        )
        for made, status, _note, _seconds in rows:
            source = f"{made.repository}@{commits[made.repository]}:`{made.path}`"
            what = f"{doc_line(made.run)} ({made.kernels})" if made.kernels > 1 else doc_line(made.run)
            print(f"| {source} | {what} | {made.reference} | `{made.identity}` | {made.target} | {status} |")
        return
    for made, status, note, seconds in rows:
        print(f"{status:8} {made.identity:75} {made.target:5} {made.kernels:3} {seconds:6.1f} s  {note[:150]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/compatibility.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = load_cases()
    if options.one:
        return run_here(cases[options.one], options.folder)
    rows, absent = [], 0
    for made in cases.values():
        if options.only not in made.identity:
            continue
        lack = missing(made, options.folder)
        if lack:
            absent += 1
            print(f"absent   {made.identity}: {', '.join(lack)}", file=sys.stderr)
            continue
        rows.append((made, *run_case(made, options.folder)))
        print_table(rows[-1:], False, options.folder) if not options.markdown else None
        sys.stdout.flush()
    if options.markdown:
        print_table(rows, True, options.folder)
    count = {status: [row for row in rows if row[1] == status] for status in ("equal", "refused", "failed")}
    for repository in sorted({row[0].repository for row in rows}):
        print(f"{repository} {commit_of(options.folder, repository)}")
    print(", ".join(f"{len(some)} {status} ({sum(row[0].kernels for row in some)} kernels)" for status, some in count.items()))
    print(f"{absent} cases without a checkout")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
