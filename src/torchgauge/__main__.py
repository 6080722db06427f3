"""``python -m torchgauge``: the command line, for launchers that start a module."""

from torchgauge.cli.start import main

if __name__ == "__main__":
    main()
