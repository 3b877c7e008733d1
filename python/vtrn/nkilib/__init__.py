"""Runs the test suite of a public nki-library checkout on vtrn: ``python -m vtrn.nkilib PATH -- <pytest args>``.

The checkout stays as it is. What it needs and does not hold (a simulator package, a dtype package, two modules of
its own, cloud clients that its CPU mode never calls) is supplied at import time by :mod:`vtrn.nkilib.shims`;
:mod:`vtrn.nkilib.plugin` is the pytest plugin that installs them and collects the result table.
"""
