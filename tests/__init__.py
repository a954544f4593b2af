"""The tests, one folder per part; a package so that an installed one of the same name cannot stand before it."""
