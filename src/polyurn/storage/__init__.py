"""The only readers and writers of our files."""
