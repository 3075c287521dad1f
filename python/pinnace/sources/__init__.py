"""Source models that can be run, one class per kind: what a conversion is compared with."""
