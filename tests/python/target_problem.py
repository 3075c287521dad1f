"""problem: why a target cannot run on this machine."""

from __future__ import annotations

import pinnace as pn
import torch
from torch import nn


def problem(target: str) -> str:
    """Empty, or why the target cannot run here: as sessions say it."""
    try:
        pn.Session(pn.load(nn.ReLU(), (torch.ones(1),)).build(verify=False), target=target)
    except pn.Unsupported as error:
        return str(error)
    return ""
