# exit: 2
"$VTRN" run "$DATA/copy.vt"
