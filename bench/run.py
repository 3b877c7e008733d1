"""./dev bench: runs every benchmark of the build one after the other and shows one table.

    run.py --build BUILD [--json FILE] [--docs] [--quick] [NAME...]     NAME: of bench_NAME; without one all run

Each benchmark measures its goal's yardstick (a register peak, a native library) interleaved with its own work. The JSON is a list
of {name, value, unit, goal, ok}; a missed goal is a row that says so, not an error. The name `accuracy` alone compares predicted
with published kernel times instead (bench_accuracy.py).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def commands(build: pathlib.Path, quick: bool):
    """(name, command) of every benchmark; each takes --json FILE."""
    for path in sorted((build / "bench").glob("bench_*")):
        if path.is_file() and os.access(path, os.X_OK) and path.suffix == "":
            yield path.name.removeprefix("bench_"), [str(path)]
    frontend = [sys.executable, str(HERE / "bench_frontend.py"), "--peak", str(build / "bench/libbench_peak.so")]
    yield "frontend", frontend + (["--quick"] if quick else [])


def host() -> str:
    cpu = "unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return f"{cpu}, {len(os.sched_getaffinity(0))} host threads, load {os.getloadavg()[0]:.1f}"


DOCS = HERE.parent / "docs/performance.md"
BEGIN, END = "<!-- begin: written by ./dev bench --docs -->", "<!-- end -->"


def write_docs(rows):
    """The table of docs/performance.md, between its two marks: the figures that have a goal."""
    before, _, rest = DOCS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    lines = [f"Measured on: {host()}.", "", "| figure | value | unit | goal | reached |", "|---|---|---|---|---|"]
    for row in (row for row in rows if row["goal"] is not None):
        lines.append(f"| {row['name']} | {row['value']:.4g} | {row['unit']} | {row['goal']:g} | {'yes' if row['ok'] else 'no'} |")
    DOCS.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def accuracy(options) -> int:
    """Predicted against published times: rows of their own, see bench_accuracy.py."""
    command = [sys.executable, str(HERE / "bench_accuracy.py")]
    command += (["--json", str(options.json)] if options.json else []) + (["--quick"] if options.quick else [])
    command += ["--docs"] if options.docs else []
    env = dict(os.environ, PYTHONPATH=str(options.build.resolve() / "python"))
    return subprocess.run(command, env=env).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="all benchmarks and their goals", allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--docs", action="store_true", help="also write the table of docs/performance.md")
    parser.add_argument("--quick", action="store_true", help="small sizes where a benchmark has some")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.names == ["accuracy"]:
        return accuracy(options)
    known = dict(commands(options.build.resolve(), options.quick))
    for name in options.names:
        if name not in known:
            parser.error(f"no benchmark {name}; there are {', '.join(known)}")
    print(host(), flush=True)
    rows, broken = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or known:
            print(f"\nbench_{name}", flush=True)
            file = pathlib.Path(folder) / f"{name}.json"
            done = subprocess.run([*known[name], "--json", str(file)])
            if done.returncode or not file.exists():
                broken.append(name)
                continue
            rows += json.loads(file.read_text())
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.docs:
        write_docs(rows)
    goals = [row for row in rows if row["goal"] is not None]
    missed = [row for row in goals if not row["ok"]]
    print(f"\n{len(rows)} figures; {len(goals) - len(missed)} of {len(goals)} goals reached")
    for row in missed:
        print(f"  missed: {row['name']}: {row['value']:.4g} {row['unit']}, goal {row['goal']:g}")
    for name in broken:
        print(f"  failed: bench_{name}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
