"""A model whose run ends when it is made to, or at once."""

from __future__ import annotations

from typing import Any

import numpy as np

ENDLESS = """graph "g" {
  input %go : bool[]
  input %x : f32[1000]
  state "count" %now : f32[] next %next = {0}
  const %one : f32[] = {1}
  %next : f32[] = add(%now, %one)
  %last : f32[1000] = loop(none, %go, %x) {carried=1, body=graph "body" {
    input %i : i64[]
    input %c : bool[]
    input %a : f32[1000]
    %b : f32[1000] = sigmoid(%a)
    output "c" %c
    output "b" %b
  }}
  output "last" %last
}"""


def feed(go: bool) -> dict[str, Any]:
    return {"go": np.bool_(go), "x": np.ones(1000, np.float32)}
