"""``python -m vtrn``: runs an unmodified script, module or test suite that imports ``nki``.

python -m vtrn run [options] script.py [arguments]
python -m vtrn [options] -m pytest tests/
"""

import argparse
import importlib.util
import os
import runpy
import sys
import traceback

from vtrn import NkiValidationError, VtrnError, install_nki, standins


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m vtrn", description="Run a script or module with vtrn's nki.", allow_abbrev=False
    )
    parser.add_argument("--target", choices=("trn1", "inf2", "trn2", "trn3"), help="chip (default: environment, then trn3)")
    parser.add_argument("--threads", type=int, help="host threads (default: all)")
    parser.add_argument("--seed", type=int, help="seed of the chip's random generators (default 0)")
    parser.add_argument("--replace-nki", action="store_true", help="use vtrn's nki although AWS's is installed")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("what", metavar="script.py | module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for the script")
    return parser


def _refuse(text):
    print(f"vtrn run: {text}", file=sys.stderr)
    raise SystemExit(4)  # as the command does for files that cannot be read


def _check_script(path):
    """Scripts are files, or folders and archives with a __main__.py."""
    if os.path.isdir(path):
        if not os.path.exists(os.path.join(path, "__main__.py")):
            _refuse(f"{path}: Is a directory without a __main__.py")
        return
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        _refuse(f"{path}: {getattr(error, 'strerror', None) or error}")


def _check_module(name):
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a parent that is missing, a relative name
        found = False
    if not found:
        _refuse(f"there is no module {name}")


def _is_outer(frame):
    return frame.filename == __file__ or "runpy" in frame.filename


def _is_vtrn(frame):
    return frame.filename.startswith(os.path.dirname(os.path.abspath(__file__)) + os.sep)


def _trim(shown, error):
    """Drops what called the script from a traceback, and vtrn's own frames where its message already names the line."""
    ours = isinstance(error, (VtrnError, NkiValidationError))
    shown.stack[:] = [frame for frame in shown.stack if not _is_outer(frame) and not (ours and _is_vtrn(frame))]
    for next_shown, next_error in ((shown.__cause__, error.__cause__), (shown.__context__, error.__context__)):
        if next_shown is not None and next_error is not None:
            _trim(next_shown, next_error)


def _show_error(kind, error, trace):
    """A script's error as Python shows it when it runs the script itself."""
    shown = traceback.TracebackException(kind, error, trace)
    _trim(shown, error)
    print("".join(shown.format()), end="", file=sys.stderr)


def main(argv=None) -> None:
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] == ["run"]:
        argv.pop(0)
    options = _parser().parse_args(argv)
    for name in ("target", "threads", "seed"):
        value = getattr(options, name)
        if value is not None:
            os.environ["VTRN_" + name.upper()] = str(value)  # for child processes too
    install_nki(replace=options.replace_nki)
    standins.install()
    sys.argv = [options.what, *options.arguments]
    sys.excepthook = _show_error
    if options.module:
        sys.path.insert(0, os.getcwd())
        _check_module(options.what)
        runpy.run_module(options.what, run_name="__main__", alter_sys=True)
    else:
        _check_script(options.what)
        sys.path.insert(0, os.path.dirname(os.path.abspath(options.what)))
        runpy.run_path(options.what, run_name="__main__")


if __name__ == "__main__":
    main()
