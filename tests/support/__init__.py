"""What tests stand on: real servers, real databases, real processes."""
