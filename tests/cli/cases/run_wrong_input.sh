# A file that does not fit the input is refused; every way of not fitting has its message.
# exit: 2
"$PYTHON" - <<'PY'
import struct
def npy(path, descr, shape, data=b"", fortran=False):
    head = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
npy("dtype.npy", "<f4", "(256, 512)", bytes(256 * 512 * 4))
npy("shape.npy", "<V2", "(512, 256)", bytes(256 * 512 * 2))
npy("order.npy", "<V2", "(256, 512)", bytes(256 * 512 * 2), True)
npy("short.npy", "<V2", "(256, 512)", bytes(256 * 512 * 2 - 1))
npy("long.npy", "<V2", "(256, 512)", bytes(256 * 512 * 2 + 1))
open("text.npy", "w").write("not an array\n")
PY
for kind in dtype shape order short long text gone; do
    "$VTRN" run "$DATA/copy.vt" --input x=$kind.npy
    echo "$kind: $?"
done
"$VTRN" run "$DATA/copy.vt" --input y=dtype.npy
"$VTRN" run "$DATA/copy.vt" --input z=dtype.npy
"$VTRN" run "$DATA/copy.vt" --input x
