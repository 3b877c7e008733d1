# A text that breaks a rule of the target is refused with the kernel's line.
# exit: 3
sed 's/1x512\] src=%tile/1x511] src=%tile/' "$DATA/copy.vt" >bad.vt
"$VTRN" asm bad.vt -o bad.vtrn
