"""Text that should not go on by itself: orders to a model or reviewer, and secrets that would go out.

Apart from the checks of a report because these rules know no case: they are handed texts and say what is in them.
"""
