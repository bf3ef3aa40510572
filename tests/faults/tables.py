"""Faults in tables that the book stores: numbers falsified, origins forged."""

FALSIFICATIONS = []
