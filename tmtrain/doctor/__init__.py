"""Preflight: what a recipe would do on a machine, and whether it can, found without a GPU and without weights."""
