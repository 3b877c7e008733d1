# The same input gives the same digest, from a generator or from a file, by name or by position, on any number of threads.
"$VTRN" asm "$DATA/copy.vt" -o copy.vtrn
"$VTRN" run copy.vtrn --fill random --seed 7 --output first
"$VTRN" run copy.vtrn --input x=first/y.npy --output second --threads 1
"$VTRN" run "$DATA/copy.vt" -i 0=first/y.npy
cmp first/y.npy second/y.npy
