"""Text as .editorconfig has it: UTF-8, LF, a final newline, no tabs and no blanks at line ends; in code lines of at most
160 columns (tests have tables of cases, messages long strings); each .c file begins with a comment that says what it does. Also:
no path of somebody's machine.

Prints each breach as FILE:LINE: what; exit code 1 when there is one.
"""

import re
import sys

from check_size import ROOT, tracked

COLUMNS = 160
LONG_STRING = re.compile(r'"[^"]{80,}"')
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home/\w+|root)/")


def check(path):
    name = path.relative_to(ROOT)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"{name}: not UTF-8: {error}"
        return
    if text and not text.endswith("\n"):
        yield f"{name}: no newline at its end"
    if path.suffix == ".c" and not text.startswith("/*"):
        yield f"{name}:1: a .c file begins with a comment: what it does, where it sits, what it must not know"
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line or "\r" in line:
            yield f"{name}:{number}: a tab or a carriage return"
        if line != line.rstrip():
            yield f"{name}:{number}: blanks at the line's end"
        if len(line) > COLUMNS and path.suffix in (".c", ".h", ".py") and name.parts[0] != "tests" and not LONG_STRING.search(line):
            yield f"{name}:{number}: {len(line)} columns; the limit is {COLUMNS}"
        if MACHINE_PATH.search(line) and path.name != "check_text.py":
            yield f"{name}:{number}: a path of somebody's machine: {MACHINE_PATH.search(line).group(0)}"


def main() -> int:
    files = tracked("*.c", "*.h", "*.inc.c", "*.def", "*.py", "*.md", "*.build", "dev", ".ci/run", "*.toml")
    problems = [problem for path in files for problem in check(path)]
    print("\n".join(problems) if problems else f"text: {len(files)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
