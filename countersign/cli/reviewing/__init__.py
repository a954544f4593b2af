"""What a person is shown before they say anything: the review, the brief, questions, and what waits for them."""
