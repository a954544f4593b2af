"""One file per step: the only place where Temporal meets the outside."""
