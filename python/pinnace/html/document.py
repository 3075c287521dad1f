"""What all pages and tables share: the jinja2 environment, the style, and texts from models made fit to be shown.

Whatever comes from a model is escaped by jinja2, or by text() where markup is put together in Python.
"""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib import resources
from typing import Any

from pinnace.files import printable

# Names longer than that are shortened in the middle: a model's names may be of any length, a page may not.
NAME_MOST = 160
# Steps of color by the error relative to a value's largest magnitude: up to each of these.
_STEPS = (0.0, 1e-7, 1e-5, 1e-3)
BAD, UNKNOWN = "bad", "none"
LEGEND = (
    ("e0", "equal"),
    ("e1", "up to 1e-7"),
    ("e2", "up to 1e-5"),
    ("e3", "up to 1e-3"),
    ("e4", "above, within its bound"),
    (BAD, "differs"),
    (UNKNOWN, "not compared"),
)


def shown(value: object) -> str:
    """A text from a model, shortened, with what a terminal or a browser would act on as escapes."""
    text, half = str(value), NAME_MOST // 2
    if len(text) > 2 * NAME_MOST:  # before each character is looked at
        text = text[:NAME_MOST] + text[-NAME_MOST:]
    text = printable(text)
    return text if len(text) <= NAME_MOST else f"{text[:half]}…{text[-half + 1 :]}"


def text(value: object) -> str:
    """The same as HTML text or the value of an attribute."""
    import markupsafe

    return str(markupsafe.escape(shown(value)))


def sentence(value: str) -> Any:
    """A sentence with names from a model in it as HTML: with room for more than one name."""
    import markupsafe

    value = printable(value[: 4 * NAME_MOST])
    return markupsafe.escape(value if len(value) <= 3 * NAME_MOST else f"{value[: 3 * NAME_MOST - 1]}…")


def number(value: float) -> str:
    """A relative difference: three digits."""
    return "0" if value == 0 else f"{value:.2e}" if math.isfinite(value) else str(value)


def step_of(relative: float, ok: bool) -> str:
    """The class of color of one verdict."""
    if not ok:
        return BAD
    return f"e{sum(relative > step for step in _STEPS)}"


@cache
def part(name: str) -> str:
    """A file of this folder."""
    return resources.files("pinnace.html").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=jinja2.FunctionLoader(part), finalize=_finalized
    )


def _finalized(value: object) -> object:
    """Strings as shown() gives them; markup that was made here stays as it is."""
    return shown(value) if type(value) is str else value


def markup(html: str) -> Any:
    """Text that is HTML already."""
    import markupsafe

    return markupsafe.Markup(html)


def rendered(template: str, **values: Any) -> str:
    """A template of this folder with its values; strings are escaped unless they went through markup()."""
    return str(_environment().get_template(template).render(**values))


def script_hash(script: str) -> str:
    """What a content security policy calls a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


__all__ = [
    *(
        "BAD",
        "LEGEND",
        "NAME_MOST",
        "UNKNOWN",
        "markup",
        "number",
        "part",
        "rendered",
        "script_hash",
        "sentence",
        "shown",
    ),
    *("step_of", "text"),
]
