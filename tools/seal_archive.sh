#!/bin/sh
# The installed libvtrn.a: one object in which only vtrn_* symbols are global, so that the library's inner names cannot clash
# with those of the program it is linked into. usage: seal_archive.sh IN.a OUT.a COMPILER...
set -e
in=$1 out=$2
shift 2
rm -f "$out"
if command -v objcopy >/dev/null && "$@" -r -nostdlib -Wl,--whole-archive "$in" -Wl,--no-whole-archive -o "$out.o" 2>/dev/null; then
    objcopy --wildcard --keep-global-symbol='vtrn_*' "$out.o"
    ar rcs "$out" "$out.o"
    rm -f "$out.o"
else
    cp "$in" "$out" # no GNU binutils: the names stay visible
fi
