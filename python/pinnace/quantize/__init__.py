"""Quantisation after training: what Model.build(quantize=...) takes, does and reports."""
