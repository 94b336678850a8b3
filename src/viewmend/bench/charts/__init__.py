"""What figures show, and the one renderer that draws them."""
