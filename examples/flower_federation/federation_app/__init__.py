"""polyurn as a Flower app."""
