"""How numbers and nouns are said in messages, tables and pages."""
