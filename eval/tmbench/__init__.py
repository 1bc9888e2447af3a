"""The analyses of Computational Reasoning of Large Language Models (arXiv 2504.20771): its ablations, its table, what it correlates."""
