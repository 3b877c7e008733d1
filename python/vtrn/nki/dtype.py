"""nki.dtype: the data types of nki.language."""

from vtrn.nki.language.dtypes import *  # noqa: F403
from vtrn.nki.language.dtypes import __all__  # noqa: F401
