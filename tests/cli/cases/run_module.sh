printf '#!/bin/sh\necho "$@"\n' >python && chmod +x python
VTRN_PYTHON=$PWD/python "$VTRN" run -m pytest x.vtrn
