"""Holds src/LAYERS: a file of src/X may include only headers of X and of the folders that X's line names, of the others only
their contract (one header named like the folder; *_int.h stays inside), and public headers of include/vtrn.

Prints each breach as FILE:LINE: what; exit code 1 when there is one. Also says when a folder has no line, and when a line
allows what nobody uses: the table is what readers trust.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_layers() -> dict[str, set[str]]:
    layers = {}
    for line in (ROOT / "src/LAYERS").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, allowed = line.partition(":")
            layers[name] = set(allowed.split())
    return layers


def check_file(path: pathlib.Path, layer: str, allowed: set[str], used: set[str]):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        place = f"{path.relative_to(ROOT)}:{number}: "
        folder, _, rest = target.rpartition("/")
        if folder == "vtrn":
            continue
        if not folder or (path.parent / target).exists():  # beside this file
            continue
        top = folder.split("/")[0]
        used.add(top)
        if top == layer:
            continue
        if top not in allowed:
            yield f'{place}src/LAYERS does not let {layer} include {top} ("{target}")'
        elif rest not in (f"{top}.h", "result.h") and not rest.endswith(".def"):
            yield f'{place}"{target}" is not the contract of {top} ({top}.h); *_int.h and others stay inside their folder'


def main() -> int:
    layers = read_layers()
    problems = []
    for folder in sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()):
        layer, used = folder.name, set()
        if layer not in layers:
            problems.append(f"src/LAYERS: no line for src/{layer}")
            continue
        for path in sorted(folder.rglob("*.[ch]")):
            problems += check_file(path, layer, layers[layer], used)
    for layer, allowed in layers.items():
        for name in sorted(allowed):
            if name not in layers:
                problems.append(f"src/LAYERS: {layer} may include {name}, which has no line")
    print("\n".join(problems) if problems else f"layers: {len(layers)} hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
