"""pytest plugin (``-p device``): what tests for an AWS instance read of the machine, its product name, is that of a target.

The name is in a file of the kernel's; nothing else that is opened changes. VTRN_TARGET names the target.
"""

import builtins
import io
import os

PRODUCT_NAME = "/sys/devices/virtual/dmi/id/product_name"
_open = builtins.open


def _open_here(file, *args, **kwargs):
    if file == PRODUCT_NAME:
        return io.StringIO(os.environ.get("VTRN_TARGET", "trn2") + ".48xlarge\n")
    return _open(file, *args, **kwargs)


def pytest_configure(config):
    builtins.open = _open_here


def pytest_unconfigure(config):
    builtins.open = _open
