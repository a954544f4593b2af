"""Commands about who may do what: directory, keys, policies, freezes, and whether an installation is in order."""
