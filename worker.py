"""A worker process: `.venv/bin/python worker.py [--role all|agent|gateway]`; see countersign/worker_process.py."""

from __future__ import annotations

import argparse

from countersign.worker_process import leave, main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="worker.py", description="Run a Countersign worker until it is stopped.")
    parser.add_argument(
        "--role",
        choices=("all", "agent", "gateway"),
        default="all",
        help="agent: workflows, drafting, checks, decisions; gateway: the effect alone, with outside credentials;"
        " all (default): one process of each.",
    )
    leave(main(parser.parse_args().role))
