"""What tables hold, and the formats they are written in."""
