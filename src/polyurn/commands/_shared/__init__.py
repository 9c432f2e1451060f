"""What several commands share: options, where they write, how tables are read and results are shown."""
