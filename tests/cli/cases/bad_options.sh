# Every wrong option exits 2 and says what is wrong.
"$VTRN" chips --jsn || echo $?
"$VTRN" check || echo $?
"$VTRN" chips --json=yes || echo $?
"$VTRN" asm "$DATA/copy.vt" || echo $?
"$VTRN" asm "$DATA/copy.vt" -o || echo $?
"$VTRN" run "$DATA/copy.vt" --threads many || echo $?
"$VTRN" run "$DATA/copy.vt" --threads -1 || echo $?
"$VTRN" run "$DATA/copy.vt" --fill ones || echo $?
"$VTRN" run "$DATA/copy.vt" "$DATA/copy.vt" --fill zeros || echo $?
"$VTRN" chips trn1 trn2 || echo $?
"$VTRN" time "$DATA/copy.vt" --lines -1 || echo $?
"$VTRN" help frobnicate || echo $?
