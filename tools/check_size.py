"""Holds the sizes of style: a file has at most 1,000 lines and a C function at most 120, tables (*.def, generated tables) apart.

Prints each breach, and with --largest N the N largest files and functions. Exit code 1 when there is a breach.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_MAX, FUNCTION_MAX = 1000, 120
TABLE = re.compile(r"(\.def|_tables\.[ch])$")
NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")


def tracked(*patterns):
    """Files of the project, also those that are not committed yet."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in names if name and (ROOT / name).exists()]


def functions(lines):
    """(name, first line, lines) of C functions: their brace stands in the first column, or ends the line of a one-liner."""
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            end = next((n for n, text in enumerate(lines[number:], number + 1) if text.startswith("}")), len(lines))
            head = next((t for t in reversed(lines[: number - 1]) if t and not t[0].isspace() and t[0] not in "/*#"), "")
            match = NAME.search(head)
            yield (match.group(1) if match else "?"), number, end - number + 1


def main() -> int:
    problems, sizes = [], []
    for path in tracked("*.c", "*.h", "*.py", "dev"):
        if TABLE.search(path.name):
            continue
        name = path.relative_to(ROOT)
        lines = path.read_text(errors="replace").splitlines()
        sizes.append((len(lines), str(name)))
        if len(lines) > FILE_MAX:
            problems.append(f"{name}: {len(lines)} lines; the limit is {FILE_MAX}: split it by what it does")
        if path.suffix not in (".c", ".h"):
            continue
        for function, first, length in functions(lines):
            sizes.append((length, f"{name}:{first} {function}()"))
            if length > FUNCTION_MAX:
                problems.append(f"{name}:{first}: {function} has {length} lines; the limit is {FUNCTION_MAX}: split it")
    if "--largest" in sys.argv:
        for length, name in sorted(sizes, reverse=True)[: int(sys.argv[sys.argv.index("--largest") + 1])]:
            print(f"{length:5} {name}")
    print(
        "\n".join(problems) if problems else f"sizes: {len(sizes)} files and functions within {FILE_MAX} and {FUNCTION_MAX} lines"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
