"""nki.compiler: decorators that steer AWS's compiler. vtrn runs instructions in program order, so they change nothing."""

from vtrn.nki.language.loops import no_reorder


def _unchanged(function=None, **_options):
    return (lambda decorated: decorated) if function is None else function


enable_stack_allocator = _unchanged
force_auto_alloc = _unchanged
skip_middle_end_transformations = _unchanged

__all__ = ["enable_stack_allocator", "force_auto_alloc", "no_reorder", "skip_middle_end_transformations"]
