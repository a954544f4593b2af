"""Keys and signatures: statements as compact JWS, checkpoints, key files.

A room of its own because both the activities and the gateway verify for themselves, the command line signs, and
`domain` stays free of cryptography (which cannot be imported inside a workflow sandbox).
"""
