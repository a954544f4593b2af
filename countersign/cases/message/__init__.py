"""Telling a customer of what an operation did, once the outside has confirmed it."""
