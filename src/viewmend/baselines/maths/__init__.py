"""Mathematics that several baselines share and no other method uses."""
