"""Kinds of work, one folder each: request, checks, rubric, action and policy name."""
