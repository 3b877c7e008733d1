"""Runs one case of the command's tests: a shell script whose output and exit code are compared with files beside it.

    run_cli.py VTRN CASE.sh [--update]

CASE.sh runs in an empty folder with $VTRN (the command), $DATA (tests/cli/data) and $PYTHON set. Its exit code must be the one of
a line "# exit: N" (default 0). Beside it: CASE.stdout.exact or CASE.stdout.glob, the same for stderr; a stream without a file
must stay empty. In a glob, * stands for anything within a line. --update writes the .exact files anew, for reading in a diff.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def compare(case: pathlib.Path, stream: str, got: str, update: bool) -> str:
    """What is wrong with a stream; "" when nothing is."""
    exact, glob = case.with_suffix(f".{stream}.exact"), case.with_suffix(f".{stream}.glob")
    if glob.exists():
        wanted = glob.read_text().splitlines()
        lines = got.splitlines()
        # Only * is special: programs are full of brackets and question marks.
        patterns = [re.sub(r"([\[\]?])", r"[\1]", line) for line in wanted]
        if len(lines) == len(wanted) and all(fnmatch.fnmatchcase(a, b) for a, b in zip(lines, patterns, strict=True)):
            return ""
        return f"{stream} does not fit {glob.name}:\n{got}"
    wanted = exact.read_text() if exact.exists() else ""
    if got == wanted:
        return ""
    if update:
        exact.write_text(got)
        return ""
    return f"{stream} is not {exact.name if exact.exists() else 'empty'}; it is:\n{got}\nand should be:\n{wanted}"


def main() -> int:
    vtrn, case, update = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), "--update" in sys.argv
    expected = re.search(r"^# exit: (\d+)", case.read_text(), re.M)
    expected = int(expected.group(1)) if expected else 0
    env = dict(os.environ, VTRN=vtrn, DATA=str(case.parent.parent / "data"), PYTHON=sys.executable, LC_ALL="C")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["bash", "-u", str(case)], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    wrong = [compare(case, "stdout", done.stdout, update), compare(case, "stderr", done.stderr, update)]
    if done.returncode != expected:
        wrong.append(f"exit code {done.returncode}, should be {expected}\n{done.stderr}")
    wrong = [text for text in wrong if text]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
