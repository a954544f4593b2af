"""What happens, in which order: deterministic code that Temporal replays."""
