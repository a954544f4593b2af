"""The report case: figures from a table, written up and published to a channel."""
