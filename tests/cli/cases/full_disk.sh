# A result that could not be written is an error, whoever writes it.
# exit: 4
if [ ! -e /dev/full ]; then
  cat "${0%.sh}.stderr.exact" >&2
  exit 4
fi
for words in --help --version "run --help" chips "chips trn2 --json" "check $DATA/copy.vt" "run $DATA/copy.vt --fill zeros"; do
  "$VTRN" $words >/dev/full
  [ $? = 4 ] || echo "$words did not fail" >&2
done
"$VTRN" disasm "$DATA/copy.vt" -o /dev/full
