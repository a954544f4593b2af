"""Commands that look at runs and change nothing: how they stand, what they cost, who was told."""
