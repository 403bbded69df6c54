"""The maintenance demo: a scratch repository, a scripted worst-case agent, and the checks on what really happened."""
