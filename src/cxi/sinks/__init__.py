"""Who carries it out? Executors that take a lease and nothing else."""
