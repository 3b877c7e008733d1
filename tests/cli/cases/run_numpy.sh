# What NumPy writes is read, what is written NumPy reads, bit for bit, for every dtype that NumPy knows. Skipped without NumPy.
"$PYTHON" -c 'import numpy' 2>/dev/null || exit 0
for dtype in f32 f16 i8 i16 i32 u8 u16 u32; do
    sed "s/bf16/$dtype/" "$DATA/copy.vt" >copy.vt
    "$PYTHON" - $dtype <<'PY'
import sys
import numpy as np
name = {"f": "float", "i": "int", "u": "uint"}[sys.argv[1][0]] + sys.argv[1][1:]
np.save("x.npy", np.random.default_rng(3).integers(0, 120, (256, 512)).astype(name))
PY
    "$VTRN" run copy.vt --input x=x.npy --output out >/dev/null && "$PYTHON" -c '
import numpy as np
x, y = np.load("x.npy"), np.load("out/y.npy")
assert x.dtype == y.dtype and (x == y).all()' || exit 1
done
# Random inputs are different numbers within -1 .. 1.
for dtype in f32 f16; do
    sed "s/bf16/$dtype/" "$DATA/copy.vt" >copy.vt
    "$VTRN" run copy.vt --fill random --output out >/dev/null && "$PYTHON" -c '
import numpy as np
y = np.load("out/y.npy")
assert (abs(y) < 1).all() and np.unique(y).size > 2000 and (y < 0).any() and (y > 0).any()' || exit 1
done
