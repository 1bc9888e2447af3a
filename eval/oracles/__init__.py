"""The analysis of LUMINA: what each oracle changes, over models, worlds, horizons and wordings."""
