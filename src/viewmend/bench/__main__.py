"""``python -m viewmend.bench``: the command ``viewmend bench`` where nothing is installed."""

from viewmend.bench.commands import app

app(prog_name="python -m viewmend.bench")
