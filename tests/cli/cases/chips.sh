"$VTRN" chips
