# An error in the text names the line.
# exit: 3
sed 's/dma_copy dst=%y/dma_kopy dst=%y/' "$DATA/copy.vt" >bad.vt
"$VTRN" asm bad.vt -o bad.vtrn
