"""The command line: a file per command, in a folder by what it is for; what all of them share lies here.

Stands on top of everything: it reads and writes the ledger, signs with people's own keys, and talks to the Temporal
server. What is slow to import (the Temporal client, the ledger, readers of data) is imported inside the commands.
"""
