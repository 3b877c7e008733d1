# Without arguments: the same help on stderr.
# exit: 2
"$VTRN"
