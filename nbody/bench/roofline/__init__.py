"""The roofline suite: what a kernel reaches of what its card allows, and what explains the rest."""
