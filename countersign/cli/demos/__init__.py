"""Whole runs on this machine with everything they need started for them: the demos, and one with a live model."""
