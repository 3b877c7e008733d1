"""./dev docs: writes the generated files of docs/ anew; with --check says which are stale and exits 1.

docs/isa.md comes from the instruction table and the comments above the instructions' bodies (tools/isadoc.c).
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="generated docs", allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    command = [options.build / "tools/isadoc", *(["--check"] if options.check else []), ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    text = (done.stdout + done.stderr).strip()
    if done.returncode:
        print(text)
        return 1
    print("docs: docs/isa.md is " + ("fresh" if options.check else "written"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
