"""What would this call really do? One file a language or tool family."""
