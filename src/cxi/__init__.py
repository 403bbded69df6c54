"""CXI: context-to-execution integrity for LLM agents."""

__version__ = "0.1.0"
