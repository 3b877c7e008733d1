# A program's time, as text and as JSON, at two levels and on another chip; a program that does not fit; wrong options.
"$VTRN" asm "$DATA/copy.vt" -o copy.vtrn && "$VTRN" time copy.vtrn
"$VTRN" time copy.vtrn --level rule --target trn3 --lines 1 --json
"$VTRN" time copy.vtrn --level fine || echo $?
"$VTRN" time copy.vtrn --target trn9 || echo $?
cp "$DATA/full.vt" full.vt; "$VTRN" time full.vt | head -3
"$VTRN" time "$DATA/loop_from_memory.vt" || echo $?
