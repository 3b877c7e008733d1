# Help is on stdout and exits 0; each command has its own.
"$VTRN" --help && "$VTRN" help chips && "$VTRN" disasm --help
