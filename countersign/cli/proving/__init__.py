"""Commands for auditors: the record verified, its history, an operation's whole story, and the outside compared."""
