"""What did the operator say? Files, lock, packs; all errors are found here."""
