"""Environments: generators, simulators, oracles, prompts, readers and verifiers. Pure Python; nothing heavier than numpy."""
