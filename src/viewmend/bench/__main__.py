"""``python -m viewmend.bench``: the command ``viewmend bench`` where nothing is installed."""

from viewmend.bench.commands import app

if __name__ == "__main__":
    app(prog_name="python -m viewmend.bench")
