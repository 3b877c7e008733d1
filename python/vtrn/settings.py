"""How kernels are run: target, threads, seed. Arguments win over ``vtrn.settings``, which win over the environment."""

import dataclasses
import os

from vtrn import _vtrn

# Variables that name the target, the most explicit first; the last two are AWS's own.
TARGET_VARIABLES = ("VTRN_TARGET", "NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION")
DEFAULT_TARGET = "trn3"  # what nki.simulate assumes where no chip is found


@dataclasses.dataclass
class Settings:
    """Fields that are ``None`` are taken from the environment when a kernel starts."""

    target: str | None = None
    threads: int | None = None
    seed: int | None = None
    stochastic_rounding: bool | None = None

    def merged(self, **given):
        """A copy with the given values that are not None."""
        return dataclasses.replace(self, **{name: value for name, value in given.items() if value is not None})


settings = Settings()


def target_of(chosen=None, hint=None) -> str:
    """The canonical name (trn1, inf2, trn2, trn3) of an explicit choice, the settings, the environment or a hint."""
    for name in (chosen, settings.target, *map(os.environ.get, TARGET_VARIABLES), hint, DEFAULT_TARGET):
        if name:
            return _vtrn.target_name(name)
    raise AssertionError("the default target is always there")


def current_target() -> str:
    """The target of the running kernel; outside one, what a kernel would get."""
    return _vtrn.current_target() or target_of()


def _flag(name) -> bool:
    return os.environ.get(name, "0").lower() not in ("", "0", "false", "no")


def session_options(chosen: Settings) -> dict:
    """Keyword arguments of a run, the target apart; absent ones mean the chip's default."""
    options = {"mx_scale_v03": os.environ.get("VTRN_MX_SCALE", "") == "0.3"}
    for name in ("threads", "seed"):
        value = getattr(chosen, name)
        if value is None:
            value = os.environ.get("VTRN_" + name.upper())
        if value is not None:
            options[name] = value
    stochastic = chosen.stochastic_rounding
    if stochastic is None:
        stochastic = _flag("VTRN_STOCHASTIC_ROUNDING") or _flag("NEURON_RT_STOCHASTIC_ROUNDING_EN")
    return {"stochastic_rounding": stochastic, **options}
