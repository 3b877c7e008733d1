"$VTRN" asm "$DATA/copy.vt" -o copy.vtrn && "$VTRN" check copy.vtrn && "$VTRN" check copy.vtrn --json
