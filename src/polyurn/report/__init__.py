"""Records in, one self-contained HTML page or figures for a paper out. Nothing is fitted here."""
