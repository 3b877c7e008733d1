# exit: 2
"$VTRN" chips trn9
