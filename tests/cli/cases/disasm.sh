# print -> parse -> print is the identity, through both forms.
"$VTRN" asm "$DATA/copy.vt" -o a.vtrn && "$VTRN" disasm a.vtrn | "$VTRN" asm - -o b.vtrn && cmp a.vtrn b.vtrn
"$VTRN" disasm a.vtrn | tee a.vt
"$VTRN" disasm a.vt -o b.vt && cmp a.vt b.vt
