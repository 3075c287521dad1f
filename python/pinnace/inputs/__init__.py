"""Inputs and sizes that nobody gave: searched by the graph's shape rules, filled by what the graph does with them."""
