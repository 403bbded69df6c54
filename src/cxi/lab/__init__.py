"""What does it stop, and at what cost? Experiments over the public API only."""
