"""Runs the payment service until it is ended: `python -m examples.payments --help`."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from examples.payments.service import ADMIN_TOKEN, HOST, TOKEN, serve
from examples.payments.store import Malformed, Store


def main() -> None:
    """Serve from a database file; the first line says where."""
    parser = argparse.ArgumentParser(prog="python -m examples.payments", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on this machine; 0: any free one")
    parser.add_argument("--database", type=Path, required=True, help="SQLite file; made where there is none")
    parser.add_argument("--seed", type=Path, help="JSON file with orders, added where the database lacks them")
    arguments = parser.parse_args()
    token = os.environ.get(TOKEN, "")
    if not token:
        parser.error(f"{TOKEN} is not set; set it to the bearer token that callers need")
    store = Store(arguments.database)
    if arguments.seed:
        try:
            store.seed(json.loads(arguments.seed.read_bytes()))
        except (OSError, ValueError, Malformed) as error:
            parser.error(f"{arguments.seed}: {error}; see examples/payments/orders.json")
    try:
        server = serve(store, token, os.environ.get(ADMIN_TOKEN, ""), arguments.port)
    except OSError as error:
        parser.error(f"port {arguments.port} cannot be used: {error.strerror}; choose another with --port")
    print(f"payments at http://{HOST}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
