"""Private data: the mechanisms, which alone see rows, their queries, and the privacy accounting.

An algorithm declares its queries (`events`). Budget is reserved for them (`ledger`) before a mechanism
computes anything. An accountant (`accountants`) turns queries into (epsilon, delta).
"""
