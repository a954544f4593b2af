"""The data a report rests on: stored under its hash, read strictly, queried read-only."""
