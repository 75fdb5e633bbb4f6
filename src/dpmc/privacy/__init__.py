"""Private data: the mechanisms, which alone see rows, their releases, and the privacy accounting.

An algorithm declares its releases (`events`). Budget is reserved for them (`ledger`) before a mechanism
computes anything. An accountant (`accountants`) turns releases into (epsilon, delta).
"""
