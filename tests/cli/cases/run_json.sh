"$VTRN" run "$DATA/copy.vt" --fill zeros --json | "$PYTHON" -c '
import json, sys
run = json.load(sys.stdin)
print(run["name"], run["target"], run["cores"], run["results"], run["counters"]["dma_instructions"], run["counters"]["hbm_read_bytes"])'
