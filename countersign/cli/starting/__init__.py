"""Commands that bring a new operation under way: a request, its signature, its run, and what it follows or replaces."""
