# A generation's other names give the same chip.
"$VTRN" chips trn2 && "$VTRN" chips gen3 | cmp - <("$VTRN" chips TRN2)
