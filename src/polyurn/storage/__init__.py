"""The only readers and writers of our files, which are written whole or not at all."""
