"""Linear algebra, class shares and calibration that every method uses."""
