"""Posteriors of Bayesian neural networks with reference draws, and scores of a sampler's draws against them."""
