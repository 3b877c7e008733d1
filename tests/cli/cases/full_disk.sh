# A result that could not be written is an error.
# exit: 4
[ -e /dev/full ] || { echo "vtrn disasm: stdout: No space left on device" >&2; exit 4; }
"$VTRN" disasm "$DATA/copy.vt" -o /dev/full
