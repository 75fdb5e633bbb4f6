"""The private data: mechanisms, which alone see rows, what they release, and what that costs.

An algorithm declares its releases (`events`) and reserves budget for them (`ledger`) before a
mechanism computes anything; an accountant (`accountants`) turns releases into (epsilon, delta).
"""
