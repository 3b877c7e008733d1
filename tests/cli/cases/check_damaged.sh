# One flipped bit is found.
# exit: 3
"$VTRN" asm "$DATA/copy.vt" -o copy.vtrn
"$PYTHON" -c '
data = bytearray(open("copy.vtrn", "rb").read())
data[len(data) // 2] ^= 4
open("copy.vtrn", "wb").write(data)'
"$VTRN" check copy.vtrn
