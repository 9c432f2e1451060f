"""How a cohort is trained: one after the other, in processes, or batched."""
