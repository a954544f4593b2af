"""A small real payment service for examples and tests: orders, payments, refunds, reversals and customers' messages.

It knows nothing of Countersign, and Countersign nothing of it beside what docs/refunds.md says: so it can disagree.
"""
