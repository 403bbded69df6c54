"""Which value is this, as its target reads it? One file a family."""
