# exit: 4
VTRN_PYTHON=/nowhere/python "$VTRN" run kernel.py
