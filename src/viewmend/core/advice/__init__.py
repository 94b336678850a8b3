"""What to label and measure next, which labels to doubt, and when to abstain."""
