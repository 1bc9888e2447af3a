"""Training on TRL with rewards that the environment verifies step by step: data, rewards, trainers, cards and the command line."""
