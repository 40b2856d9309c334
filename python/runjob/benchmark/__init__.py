"""`python -m runjob.benchmark`: measures runjob on the user's own machine and hosts, beside what PyTorch has itself."""
