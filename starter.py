"""The command line: `.venv/bin/python starter.py --help`."""

from countersign.cli.app import main

if __name__ == "__main__":
    main()
