"""``python -m vtrn``: runs an unmodified script, module or test suite that imports ``nki``.

python -m vtrn run [options] script.py [arguments]
python -m vtrn [options] -m pytest tests/
"""

import argparse
import os
import runpy
import sys

from vtrn import install_nki, standins


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
    if options.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.what, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(options.what)))
        runpy.run_path(options.what, run_name="__main__")


if __name__ == "__main__":
    main()
