# exit: 2
"$VTRN" frobnicate
