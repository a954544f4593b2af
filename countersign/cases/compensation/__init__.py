"""Taking back what an operation did, as far as the outside can: a new governed action, never a rollback."""
