"""What a session runs on, beside the processor."""

from __future__ import annotations

from collections.abc import Sequence

from pinnace.session import Session
from pinnace.targets import Device


def devices_of(session: Session) -> list[str]:
    """Back ends other than the processor's that nodes run on."""
    return list(dict.fromkeys(p.backend for p in session.placement if p.backend not in ("cpu", "runtime", "none")))


def device_of(target: str, known: Sequence[Device], session: Session | None = None) -> Device:
    """The device of a target; where it leaves that open, as "auto" and lists do, the one that the session runs on."""
    kind = target.partition(":")[0]
    names = [target, kind]
    if session is not None and ("," in target or kind == "auto"):
        names = devices_of(session) or ["cpu"]
    return next((d for name in names for d in known if d.target == name), Device(target, True, target))


__all__ = ["device_of", "devices_of"]
