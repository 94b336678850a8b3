"""What to do next with a fitted model: what to label, measure, doubt, and leave undecided."""
