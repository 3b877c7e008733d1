# An index outside its table faults: the message names the kernel's line, the operand, the value and the limit, then the
# instruction. A good one gathers.
# exit: 1
"$PYTHON" - <<'PY'
import struct
def npy(path, descr, shape, data):
    head = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
npy("good.npy", "<i4", (4, 1), struct.pack("<4i", 3, 0, 15, 3))
npy("bad.npy", "<i4", (4, 1), struct.pack("<4i", 3, 0, 16, 3))
PY
"$VTRN" run "$DATA/gather.vt" --fill zeros -i indices=good.npy && "$VTRN" run "$DATA/gather.vt" --fill zeros -i indices=bad.npy
