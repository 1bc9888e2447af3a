"""Turing machines, and their compilation to 2-tag systems (Computational Reasoning of LLMs, appendix A)."""
