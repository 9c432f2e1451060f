"""What comes from outside, checked once against annotations: arguments, arrays of numbers, JSON records."""
