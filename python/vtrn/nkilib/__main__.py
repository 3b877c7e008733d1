"""``python -m vtrn.nkilib PATH [options] [-- pytest arguments]``: see ``--help``."""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

NEEDED = ("pytest", "xdist", "torch", "scipy", "allpairspy", "ml_dtypes", "attr", "typing_extensions")


# How a case says that it found no memory: NumPy, PyTorch, Python, vtrn, and pytest-xdist of a worker that was killed.
NO_MEMORY = ("Unable to allocate", "can't allocate memory", "MemoryError", "no memory for", "crashed while running")


def _memory_gib():
    """7/8 of the memory that is free now: a case that needs more fails with MemoryError instead of ending its worker."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 0.0
    return round(free / 2**20 * 7 / 8, 1)


def _arguments(argv):
    parser = argparse.ArgumentParser(
        prog="python -m vtrn.nkilib",
        description="Run the test suite of a public nki-library checkout on vtrn. Nothing in the checkout changes.",
        epilog="example: python -m vtrn.nkilib ~/nki-library -- -m fast -k rmsnorm",
    )
    parser.add_argument("path", help="the checkout (the folder with src/ and test/)")
    parser.add_argument("--target", default="trn2", choices=("trn1", "trn2", "trn3"), help="platform (default trn2)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes (default: all cores)")
    parser.add_argument(
        "--memory", type=float, default=_memory_gib(), metavar="GIB", help="of all workers together (default: 7/8 of what is free)"
    )
    parser.add_argument("--all", action="store_true", help="run also the cases that the suite skips as too large")
    parser.add_argument("--json", metavar="FILE", help="write {collected, passed, failed, skipped, families} there")
    parser.add_argument("--results", metavar="FILE", help="one JSON line a case (default: a temporary file)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="with --results: leave out what is recorded there (with --all: but for skips)",
    )
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    if "--" in argv:
        cut = argv.index("--")
        own, rest = argv[:cut], argv[cut + 1 :]
    else:
        own, rest = argv, []
    options = parser.parse_args(own)
    options.pytest = options.pytest + rest
    return parser, options


def _summary(path):
    """Families with counts by outcome, and the failures by reason; the last record of a case counts."""
    cases = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            cases[row["id"]] = row
    families = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    for row in cases.values():
        outcome = "failed" if row["outcome"] == "error" else row["outcome"]
        families[row["family"]][outcome] += 1
        if outcome == "failed":
            reasons[row["why"].split("\n")[0][:160]] += 1
    return families, reasons


def _out_of_memory(path):
    """The cases whose last record says that their worker's share of the memory was too small."""
    cases = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            cases[row["id"]] = row["outcome"] == "failed" and any(words in row["why"] for words in NO_MEMORY)
    return [case for case, small in cases.items() if small]


def _print_table(families, reasons):
    width = max([len("family"), *map(len, families)])
    print(f"{'family':{width}}  passed  failed  skipped")
    total = collections.Counter()
    for name in sorted(families):
        row = families[name]
        total.update(row)
        print(f"{name:{width}}  {row['passed']:6}  {row['failed']:6}  {row['skipped']:7}")
    print(f"{'total':{width}}  {total['passed']:6}  {total['failed']:6}  {total['skipped']:7}")
    if reasons:
        print("\nwhy (cases, first line of the failure):")
        for why, count in reasons.most_common(25):
            print(f"{count:6}  {why}")
    return total


def main(argv=None):
    parser, options = _arguments(sys.argv[1:] if argv is None else argv)
    root = pathlib.Path(options.path).resolve()
    if not (root / "test" / "conftest.py").is_file() or not (root / "src").is_dir():
        parser.error(f"{options.path}: not an nki-library checkout (no test/conftest.py and src/)")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"the suite needs {', '.join(missing)}: pip install 'vtrn[nkilib]' (xdist is pytest-xdist)")
    with tempfile.TemporaryDirectory(prefix="vtrn-nkilib-") as work:
        results = os.path.abspath(options.results) if options.results else os.path.join(work, "results.jsonl")
        if not options.resume and os.path.exists(results):
            os.remove(results)
        environment = dict(
            os.environ,
            VTRN_NKILIB_ROOT=str(root),
            VTRN_NKILIB_RESULTS=results,
            VTRN_NKILIB_BYTES=str(int(options.memory * 2**30 / max(options.jobs, 1))),
            PYTHONPATH=os.pathsep.join([str(root), str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")]), *_own_path()]),
            PYTHONDONTWRITEBYTECODE="1",
            NEURON_PYTHONHASHSEED=os.environ.get("NEURON_PYTHONHASHSEED", "0"),
        )
        environment["VTRN_MX_SCALE"] = environment.get("VTRN_MX_SCALE", "0.3")
        if options.all:
            environment["NKILIB_SIMULATION_RUN_ALL"] = "1"
        if options.resume:
            environment["VTRN_NKILIB_RESUME"] = "1"
        command = [sys.executable, "-m", "pytest", "-p", "vtrn.nkilib.plugin", "-p", "no:cacheprovider"]
        command += ["-c", str(root / "test" / "pytest.ini"), "--rootdir", str(root)]
        command += ["-o", f"artifacts_dir={work}/artifacts", "--output-directory", f"{work}/out", "--force-local-cleanup"]
        command += ["--test-mode", "simulation", "--platform-target", options.target]
        command += ["-q", "--no-header", "--tb=short", "--disable-warnings", *options.pytest]
        if not any(str(root) in argument or argument.startswith("test/") for argument in options.pytest):
            command.append(str(root / "test" / "integration"))
        jobs = ["-n", str(options.jobs)] if options.jobs > 1 else ["-n", "0"]
        status = subprocess.run(command + jobs, cwd=work, env=environment, check=False).returncode
        alone = _out_of_memory(results) if options.jobs > 1 and os.path.exists(results) else []
        if alone:  # once more with all the memory, one after the other
            print(f"\n{len(alone)} cases had too little memory beside others; each runs once more alone", flush=True)
            only = os.path.join(work, "only.json")
            with open(only, "w", encoding="utf-8") as file:
                json.dump(alone, file)
            environment.update(VTRN_NKILIB_ONLY=only, VTRN_NKILIB_BYTES=str(int(options.memory * 2**30)))
            status = subprocess.run([*command, "-n", "0"], cwd=work, env=environment, check=False).returncode
        if not os.path.exists(results):
            return status or 1
        families, reasons = _summary(results)
        total = _print_table(families, reasons)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                row = {"collected": sum(total.values()), **{k: total[k] for k in ("passed", "failed", "skipped")}}
                row["families"] = {name: dict(count) for name, count in sorted(families.items())}
                json.dump(row, file, indent=1)
        return 0 if total["failed"] == 0 and status in (0, 1) else 1


def _own_path():
    """Where this vtrn was found, so that workers find the same one."""
    return [str(pathlib.Path(__file__).resolve().parents[2])]


if __name__ == "__main__":
    sys.exit(main())
