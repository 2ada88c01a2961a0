"""Load generators and benchmarks; what they measured is committed under results/."""
