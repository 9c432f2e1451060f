"""What comes from outside, checked once against annotations: arguments, arrays and JSON documents."""
