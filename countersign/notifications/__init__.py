"""Notifications: delivers the ledger's notices by webhook and mail, at least once, and decides nothing.

Runs where the gateway runs, since it holds credentials of outside systems; what drafts never loads it (G39).
"""
