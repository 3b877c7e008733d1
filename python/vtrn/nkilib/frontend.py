"""``nki.compiler.frontend`` as the harness uses it in its trace-only cases: the kernel is recorded and checked, not run.

AWS's front end turns a kernel into MLIR; here ``module`` is a :class:`vtrn.Program`, whose text is its assembly. A kernel
that the front end must refuse raises here as it does when it runs: every instruction is checked while it is recorded.
"""

import sys

import vtrn


class NKIFrontend:
    """What the harness names as the base of all front ends."""


class ParserFrontend(NKIFrontend):
    def compile(self, kernel, inputs, target, lnc, artifacts_dir=None, dump_python_ast=False, output_names=None):
        """Records ``kernel[lnc](**inputs)`` for a target; the other arguments steer files that vtrn does not write."""
        from vtrn.nki import jit

        return FrontendResult(vtrn.trace(jit(kernel)[lnc], target=target, **inputs))


class FrontendResult:
    """``.module.operation.print(file=...)`` writes the recorded program."""

    def __init__(self, program):
        self.program = program
        self.module = self.operation = self

    def print(self, file=None, **_layout):
        (file or sys.stdout).write(self.program.text())


__all__ = ["FrontendResult", "NKIFrontend", "ParserFrontend"]
