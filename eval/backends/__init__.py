"""Policies that run a model. Only modules in this package import torch, transformers, vllm or openai, and only when used."""
