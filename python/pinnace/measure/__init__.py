"""Measuring a session: times, processor time, whether processors are cores, and energy, measured or modelled."""
