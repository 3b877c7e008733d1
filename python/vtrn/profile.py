"""How long the chip would take, and why: the tables of a timing (docs/timing.md)."""

import numpy as np

from vtrn.launch import is_old, record, run

# struct vtrn_step of src/time/time.h
_STEP = np.dtype(
    [(name, "<u8") for name in ("ready_ps", "start_ps", "end_ps", "busy_ps")]
    + [("instruction", "<u4"), ("cause", "<u4")]
    + [(name, "u1") for name in ("core", "stream", "wait", "assumed_percent")]
    + [("", "V4")]
)


class Profile:
    """Times in picoseconds from the kernel's begin.

    ``total_ps`` is what a device profile calls the kernel's time: ``span_ps`` of work and ``kernel_ps`` around it. ``count_ps``
    is the time that no program with this work can beat, ``count_by`` what sets it; ``assumed_ps`` the part of the critical path
    that rests on assumed numbers. ``streams``, ``resources``, ``memories`` and ``lines`` are lists of dicts, ``steps`` a NumPy
    array with a row for each executed instruction, ``path`` the rows of the critical path. ``does_not_fit`` is empty, or says
    which tensors are too much for SBUF or PSUM. ``result`` is what the kernel returned, when it ran.
    """

    def __init__(self, tables, result=None):
        self.__dict__.update(tables)
        self.steps = np.frombuffer(tables["steps"], _STEP)
        self.path = np.frombuffer(tables["path"], "<u4")
        self.result = result

    def __repr__(self):
        return f"<Profile {self.target}, level {self.level}: {self.total_ps / 1e6:.2f} us>"

    def __str__(self):
        total, bound = self.total_ps / 1e6, self.count_ps / 1e6
        rows = [f"{total:.2f} us on {self.target} (level {self.level}), no faster than {bound:.2f}: {self.count_by}"]
        if self.does_not_fit:
            rows.append(f"does not fit: {self.does_not_fit}")
        for s in self.streams:
            most_first = sorted(s["wait_why_ps"].items(), key=lambda item: -item[1])
            waits = ", ".join(f"{why} {ps / 1e6:.2f}" for why, ps in most_first) or "none"
            busy, idle = s["busy_ps"] / 1e6, s["idle_ps"] / 1e6
            rows.append(f"core {s['core']} {s['stream']:9} busy {busy:.2f} us, idle {idle:.2f}, waits: {waits}")
        for line in self.lines[:10]:
            rows.append(f"{line['file'].rpartition('/')[2]}:{line['line']} {line['critical_ps'] / 1e6:.2f} us of the critical path")
        return "\n".join(rows)


def profile(kernel, target=None, level=None, static_dma=False):
    """``vtrn.profile(kernel)(a, b)`` records the kernel, runs it, times it, and returns a :class:`Profile`."""

    def profiled(*args, **kwargs):
        program, arrays = record(kernel, args, kwargs, target)
        if program.replayable:
            result = program.run(*arrays)
        else:
            result = kernel(*args, **kwargs) if is_old(kernel) else run(kernel, *args, target=target, **kwargs)
        timed = program.time(level=level, static_dma=static_dma)
        timed.result = result
        return timed

    return profiled


__all__ = ["Profile", "profile"]
