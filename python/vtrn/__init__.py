"""vtrn: Trainium in software. Runs NKI kernels on a virtual chip.

    import vtrn.nki as nki            # the NKI API, without touching an installed one
    result = nki.simulate(kernel)(a, b)

    vtrn.install_nki()                # or: `import nki` finds vtrn's from now on
    program = vtrn.trace(kernel, a, b, target="trn2")
    program.save("kernel.vtrn")       # runs again without Python: `vtrn run kernel.vtrn`

    print(vtrn.profile(kernel, target="trn2")(a, b))   # how long the chip would take, and why

Kernels are ordinary Python; every nisa call is checked and appended in C, and runs in C.
"""

import os as _os

from vtrn import _vtrn

_vtrn.set_package(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), ""))

from vtrn._vtrn import (  # noqa: E402
    Deadlock,
    Fault,
    NkiIndexError,
    NkiTypeError,
    NkiUnsupported,
    NkiValidationError,
    NkiValueError,
    VtrnError,
)
from vtrn.install import install_nki  # noqa: E402
from vtrn.launch import last_counters, run, trace  # noqa: E402
from vtrn.profile import Profile, profile  # noqa: E402
from vtrn.program import Program  # noqa: E402
from vtrn.settings import Settings, settings  # noqa: E402

__all__ = [
    "Deadlock",
    "Fault",
    "NkiIndexError",
    "NkiTypeError",
    "NkiUnsupported",
    "NkiValidationError",
    "NkiValueError",
    "Profile",
    "Program",
    "Settings",
    "VtrnError",
    "install_nki",
    "last_counters",
    "profile",
    "run",
    "settings",
    "trace",
]
