"""Releases: runs that may be published, the files that they are in, and the rows that they read."""
