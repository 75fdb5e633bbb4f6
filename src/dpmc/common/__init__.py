"""What every room uses: errors, values, random streams, files, progress, threads."""
