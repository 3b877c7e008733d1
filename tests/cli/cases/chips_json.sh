# Every number has a basis and a source in JSON too.
for chip in trn1 inf2 trn2 trn3; do
    "$VTRN" chips $chip --json | "$PYTHON" -c '
import json, sys
chip = json.load(sys.stdin)
facts = chip["facts"]
assert all(f["basis"] in ("documented", "measured", "derived", "assumed") and f["source"] for f in facts)
value = {f["name"]: f["value"] for f in facts}
print(chip["name"], chip["nc_version"], value["partitions"], value["psum_banks"], value["sbuf_partition_bytes"])'
done
