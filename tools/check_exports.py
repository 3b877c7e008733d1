"""What libvtrn exports is what include/vtrn declares: the shared library exactly the functions marked VTRN_API, the archive
nothing whose name does not begin with vtrn_. usage: check_exports.py BUILD"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARATION = re.compile(r"VTRN_API\s[^;]*?\b(vtrn_\w+)\s*\(")


def symbols(path, *options):
    text = subprocess.run(["nm", "--defined-only", *options, str(path)], capture_output=True, text=True, check=True).stdout
    return {parts[2] for line in text.splitlines() if len(parts := line.split()) == 3 and parts[1] in "TDBRVWGi"}


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    declared = {name for header in (ROOT / "include/vtrn").glob("*.h") for name in DECLARATION.findall(header.read_text())}
    exported = symbols(build / "src/libvtrn.so", "--dynamic")
    archive = {name for name in symbols(build / "src/libvtrn.a", "--extern-only") if not name.startswith("vtrn_")}
    problems = [f"libvtrn.so: {name} is declared VTRN_API but not exported" for name in sorted(declared - exported)]
    problems += [f"libvtrn.so: {name} is exported but not declared VTRN_API" for name in sorted(exported - declared)]
    problems += [f"libvtrn.a: {name} is global; only vtrn_* may be" for name in sorted(archive)]
    print("\n".join(problems) if problems else f"exports: {len(exported)} functions, all vtrn_*, all declared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
