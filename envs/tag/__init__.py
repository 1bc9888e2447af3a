"""m-tag systems: follow the rules of a queue for many steps, in one reply (Computational Reasoning of LLMs, section 3)."""
