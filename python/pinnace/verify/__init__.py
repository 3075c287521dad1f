"""Verification of a program against its source, and compare(). docs/verification.md states when values are equal."""
