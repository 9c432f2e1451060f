"""Records in; one self-contained HTML page, and figures for notebooks and papers, out."""
