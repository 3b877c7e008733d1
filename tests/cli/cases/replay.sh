# The C example runs a saved program twice with the same bits; a file that is no program gets one line.
"$VTRN_EXE" asm "$DATA/copy.vt" -o copy.vtrn && "$VTRN" copy.vtrn
echo hello >bad.vtrn
"$VTRN" bad.vtrn || echo "exit code $?"
"$VTRN" || echo "exit code $?"
