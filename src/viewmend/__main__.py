"""``python -m viewmend`` is the command ``viewmend``, also where that is not on the path."""

from viewmend_command import main

if __name__ == "__main__":
    main()
