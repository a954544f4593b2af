"""Commands by which a person says something to a run: decisions on a proposal, answers, and who is in control."""
