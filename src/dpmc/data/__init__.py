"""What rows are: generated, published, tables and pictures; problems and chain files."""
