"""What breaks a ledger? Faults that are really made, one module a kind; `cxi.lab.ledger_faults` runs them all."""
