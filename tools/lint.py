"""./dev lint: every check that needs no run of a kernel. Each prints what it checked or what is wrong; exit code 1 when one fails.

    lint.py --build BUILD [NAME...]     only the named checks
"""

import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from check_size import ROOT, tracked

TOOLS = pathlib.Path(__file__).resolve().parent


def run(*command) -> tuple[bool, str]:
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def script(name, *arguments):
    return run(sys.executable, TOOLS / f"{name}.py", *arguments)


def headers(build):
    """Each header compiles alone, so that the order of includes never matters."""
    wrong, count = [], 0
    other = "arm" if platform.machine() in ("x86_64", "AMD64") else "x86"  # folders of another family's instructions
    for path in tracked("src/*.h", "include/*.h"):
        if other in path.parts:
            continue
        count += 1
        good, text = run("cc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Iinclude", "-Isrc", *simd_flags(path), "-x", "c", path)
        if not good:
            wrong.append(text)
    return not wrong, "\n".join(wrong) or f"headers: {count} compile alone"


def simd_flags(path):
    """The flags that the build gives to files of that level."""
    level = re.search(r"(avx2|avx512bf16|avx512)", path.name)
    avx2 = ["-mavx2", "-mfma", "-mf16c"]
    avx512 = [*avx2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
    flags = {"avx2": avx2, "avx512": avx512, "avx512bf16": [*avx512, "-mavx512bf16", "-mavx512vbmi"]}
    return flags[level.group(1)] if level else []


def anchors(path):
    """The anchors of a Markdown file's headings, as the usual hosts make them."""
    found = set()
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            title = re.sub(r"[`*]", "", line.lstrip("#").strip().lower())
            found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return found


def links(build):
    """Links in Markdown files lead to files and headings that exist. Addresses of the web are not asked."""
    wrong, count = [], 0
    for path in tracked("*.md"):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            file, _, anchor = target.partition("#")
            to = (path.parent / file).resolve() if file else path
            if not to.exists():
                wrong.append(f"{path.relative_to(ROOT)}: {target}: no such file")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                wrong.append(f"{path.relative_to(ROOT)}: {target}: no such heading")
    return not wrong, "\n".join(wrong) or f"links: {count} lead somewhere"


def manual(build):
    """The man page knows every command and every option that the command itself tells of."""
    vtrn = build / "src/cli/vtrn"
    page = (ROOT / "docs/man/vtrn.1").read_text().replace("\\-", "-")
    _, text = run(vtrn, "--help")
    commands = re.findall(r"^  ([a-z]+) {2,}", text, re.M)
    missing = [name for name in commands if not re.search(rf"^\.SS {name}$", page, re.M)]
    for name in commands:
        _, text = run(vtrn, name, "--help")
        missing += [f"{name} {option}" for option in re.findall(r"(--[a-z-]+)", text) if option not in page]
    missing = list(dict.fromkeys(missing))
    return not missing, "\n".join(f"docs/man/vtrn.1: nothing on {m}" for m in missing) or f"man page: {len(commands)} commands"


def python(build):
    ruff = shutil.which("ruff") or pathlib.Path(sys.executable).parent / "ruff"
    if not pathlib.Path(ruff).exists():
        return True, "python: skipped, no ruff"
    good, text = run(ruff, "check", "-q", "--no-cache", ".")
    return good, text or "python: ruff has nothing to say"


def shell(build):
    """Shell scripts parse; with shellcheck, they also have no known trap."""
    files = [ROOT / "dev", ROOT / ".ci/run", *tracked("*.sh")]
    wrong = [text for good, text in (run("bash", "-n", file) for file in files) if not good]
    if shutil.which("shellcheck"):
        good, text = run("shellcheck", "-S", "warning", ROOT / "dev", ROOT / ".ci/run", *tracked("tools/*.sh"))
        wrong += [] if good else [text]
    return not wrong, "\n".join(wrong) or f"shell: {len(files)} scripts"


CHECKS = {
    "layers": lambda build: script("check_layers"),
    "sizes": lambda build: script("check_size"),
    "text": lambda build: script("check_text"),
    "headers": headers,
    "exports": lambda build: script("check_exports", build),
    "links": links,
    "docs": lambda build: script("docs", "--build", build, "--check"),
    "man": manual,
    "python": python,
    "shell": shell,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="all checks that need no run", allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CHECKS))
    options = parser.parse_args()
    unknown = set(options.names) - CHECKS.keys()
    if unknown:
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    failed = []
    for name in options.names or CHECKS:
        good, text = CHECKS[name](options.build.resolve())
        print(text, flush=True)
        if not good:
            failed.append(name)
    print(f"lint: {', '.join(failed)} failed" if failed else "lint: all good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
