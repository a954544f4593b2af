"""Pure rules and frozen values: no clock, no I/O, no Temporal, no LangChain.

Workflows import this package through the sandbox's pass-through, where a stray `datetime.now` would go unseen:
`now` and ids always come in as arguments, and lint bans the rest.
"""
