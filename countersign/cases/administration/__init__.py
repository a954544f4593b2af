"""Changing who may do what: roles, limits, keys and policy as governed actions."""
