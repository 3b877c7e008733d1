"""Helpers of AWS's compiler package that published kernels and tests import."""
