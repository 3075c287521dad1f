"""Symbolic sizes of a .pt2 file, parsed by us and printed again.

torch hands the text of a size to sympy, which evaluates it as Python. Text of a file therefore never gets there: it is
parsed here by a grammar of numbers, symbols and a list of functions, and what torch receives is printed from the tree.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

MAX_LENGTH = 64 * 1024
MAX_DEPTH = 64
MAX_BITS = 4096  # sympy computes with constants when it reads them: 2**2**60 would take all memory
MAX_TERMS = 4096  # of a size that is multiplied out, which torch does: (a + b)**1000 has too many

# What torch prints: functions of sympy and of torch.utils._sympy.functions. All are pure.
_FUNCTIONS = (
    "Add And CeilDiv CeilToInt CleanDiv Equality Eq FloatPow FloatTrueDiv FloorDiv FloorToInt Ge GreaterThan Gt "
    "Identity IntTrueDiv IsNonOverlappingAndDenseIndicator LShift Le LessThan Lt Max Min Mod ModularIndexing Mul Ne "
    "Not Or Pow PowByNatural PythonMod RShift Rational RoundDecimal RoundToInt StrictGreaterThan StrictLessThan "
    "ToFloat TruncToFloat TruncToInt Unequality Where"
)
SIZE_FUNCTIONS = frozenset(_FUNCTIONS.split())
_POWERS = ("Pow", "PowByNatural", "FloatPow", "LShift")
_SAID_OF_SYMBOLS = (
    "commutative complex even extended_nonnegative extended_positive extended_real finite hermitian imaginary infinite "
    "integer negative nonnegative nonzero odd positive rational real zero"
)
_ASSUMPTIONS = frozenset(_SAID_OF_SYMBOLS.split())
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|'(?P<quoted>[^'\\]*)'|(?P<mark>[(),=]))",
    re.ASCII,
)
# Counters of torch are set above the largest number of an unbacked symbol, one step at a time.
_SYMBOL = re.compile(r"(?!(?:u|zuf)\d{6})[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class ExpressionError(ValueError):
    """The text is no symbolic size; says why."""


@dataclass(frozen=True)
class _Part:
    """A subtree: as torch is given it, about how many bits a constant in it may take, and terms multiplied out."""

    text: str
    bits: int
    terms: int = 1
    whole: int | None = None  # the value of an integer


class _Parser:
    def __init__(self, text: str, symbols: set[str]) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"has {len(text)} characters, at most {MAX_LENGTH} are read")
        self._text = text
        self._at = 0
        self._symbols = symbols
        self._kind, self._token = "", ""
        self._next()

    def _next(self) -> None:
        if self._at >= len(self._text):
            self._kind, self._token = "end", ""
            return
        found = _TOKEN.match(self._text, self._at)
        if not found:
            raise ExpressionError(f"place {self._at}: not part of a symbolic size")
        self._at = found.end()
        self._kind = found.lastgroup or ""
        self._token = found.group(self._kind)

    def _take(self, kind: str, token: str | None = None) -> str:
        if self._kind != kind or (token is not None and self._token != token):
            raise ExpressionError(f"place {self._at}: expected {token or kind}")
        taken = self._token
        self._next()
        return taken

    def whole(self) -> str:
        part = self._expression(0)
        self._take("end")
        return part.text

    def _expression(self, depth: int) -> _Part:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"is more than {MAX_DEPTH} levels deep")
        if self._kind == "number":
            return self._number(self._take("number"))
        name = self._take("word")
        if name in ("True", "False", "true", "false"):
            return _Part(name.lower(), 1)
        self._take("mark", "(")
        if name in ("Symbol", "Dummy"):
            return self._symbol()
        if name in ("Integer", "Float"):
            kind = self._kind if name == "Float" and self._kind == "quoted" else "number"
            part = self._number(self._take(kind), real=name == "Float")
            self._keywords({"precision"})
            return part
        if name not in SIZE_FUNCTIONS:
            raise ExpressionError(f"{name[:40]!r} is no function of symbolic sizes")
        return self._call(name, depth)

    def _symbol(self) -> _Part:
        name = self._take("quoted")
        if not _SYMBOL.fullmatch(name) or name in SIZE_FUNCTIONS or name in ("Symbol", "Integer", "Float"):
            raise ExpressionError(f"{name[:40]!r} is no name of a symbol")
        self._symbols.add(name)
        assumed = "".join(f", {key}={value}" for key, value in self._keywords(_ASSUMPTIONS))
        return _Part(f"Symbol('{name}'{assumed})", 1)

    def _keywords(self, allowed: frozenset[str] | set[str]) -> list[tuple[str, str]]:
        """', positive=True, integer=True)': keywords of the list with True, False or a number; the end of a call."""
        found = []
        while self._kind == "mark" and self._token == ",":
            self._next()
            key = self._take("word")
            self._take("mark", "=")
            value = self._take("number" if self._kind == "number" else "word")
            if key not in allowed or (key != "precision" and value not in ("True", "False")):
                raise ExpressionError(f"{key[:40]}={value[:40]} is no assumption about a symbol")
            found.append((key, value))
        self._take("mark", ")")
        return found

    @staticmethod
    def _number(digits: str, real: bool = False) -> _Part:
        try:
            if not real and re.fullmatch(r"-?\d{1,19}", digits):
                value = int(digits)
                return _Part(f"Integer({value})", value.bit_length(), whole=value)
            number = float(digits)
        except ValueError as error:
            raise ExpressionError(f"{digits[:40]!r} is no number") from error
        if not math.isfinite(number):
            raise ExpressionError(f"{digits[:40]!r} is not finite")
        return _Part(f"Float('{number!r}', precision=53)", 64)

    def _call(self, name: str, depth: int) -> _Part:
        parts: list[_Part] = []
        while not (self._kind == "mark" and self._token == ")"):
            if parts:
                self._take("mark", ",")
            if self._kind == "word" and self._token == "evaluate":  # evaluate=False, which torch's reader ignores
                self._next()
                self._take("mark", "=")
                self._take("word")
                continue
            parts.append(self._expression(depth + 1))
        self._take("mark", ")")
        bits = sum(p.bits for p in parts) + len(parts)
        terms = sum(p.terms for p in parts)
        if name == "Mul":
            terms = math.prod(p.terms for p in parts)
        elif name in _POWERS and len(parts) == 2:
            by = parts[1].whole
            if by is None and "Symbol" not in parts[1].text:
                raise ExpressionError(f"the exponent of {name} is no integer")
            times = min(max(abs(by or 0), 1), MAX_BITS + 1)
            bits = parts[0].bits + times if name == "LShift" else parts[0].bits * times
            terms = min(parts[0].terms, MAX_TERMS) ** times if parts[0].terms > 1 else 1
        if bits > max(MAX_BITS, 8 * len(self._text)):
            raise ExpressionError(f"a constant of {name} has more than {MAX_BITS} bits")
        if terms > MAX_TERMS:
            raise ExpressionError(f"{name}, multiplied out, has more than {MAX_TERMS} terms")
        return _Part(f"{name}({', '.join(p.text for p in parts)})", bits, terms)


def reprinted(text: str, symbols: set[str]) -> str:
    """The same size, printed from our own parse; names of its symbols are added to `symbols`.

    ExpressionError: it is not of the grammar, or its constants are too large to compute with.
    """
    return _Parser(text, symbols).whole()


__all__ = ["ExpressionError", "reprinted"]
