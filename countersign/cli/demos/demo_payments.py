"""The payment service of `demo-refund`: the example's own, on a free port, with a way to have one of its answers lost.

It knows nothing of Countersign, so what it holds in the end is the word of somebody else.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from countersign.cli.demos.demo_stage import HOST, Program
from countersign.cli.demos.dev_server import free_port
from countersign.domain.channel import Channels, channel_of
from countersign.domain.errors import Unavailable
from countersign.settings import ROOT, Settings
from countersign.strict_yaml import load

SECONDS = 10.0
_TOKEN, _ADMIN_TOKEN = "PAYMENTS_TOKEN", "PAYMENTS_ADMIN_TOKEN"
"""Where the service looks for them; the gateway has the first one under the name that channels.yaml gives it."""


class PaymentService(NamedTuple):
    """A payment service on this machine, for one demo."""

    port: int
    token: str
    admin_token: str

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://{HOST}:{self.port}"

    def program(self, home: Path) -> Program:
        """How it is started, with the orders of the example."""
        seed = ROOT / "examples" / "payments" / "orders.json"
        files = ["--database", str(home / "payments.db"), "--seed", str(seed)]
        command = [sys.executable, "-m", "examples.payments", "--port", str(self.port), *files]
        own = {_TOKEN: self.token, _ADMIN_TOKEN: self.admin_token}
        return Program("payment service", command, home / "payments.log", self.port, own)

    def lose_next_answer(self) -> None:
        """Have the next refund stored, and the connection broken before it is answered."""
        self._called("POST", "/admin/faults", self.admin_token, {"on": "refunds", "fault": "answer_lost"})

    def keys(self, resource: str) -> list[str]:
        """The keys of all that it ever did: `refunds`, `refunds/reversals`."""
        return [str(one["key"]) for one in self._called("GET", f"/{resource}/keys", self.token)["keys"]]

    def payments(self, order: str) -> list[dict[str, Any]]:
        """The payments of an order, with what is refunded of each at this moment."""
        return list(self._called("GET", f"/orders/{order}", self.token)["payments"])

    def _called(self, method: str, path: str, token: str, content: object = None) -> dict[str, Any]:
        import httpx2

        given = {"Authorization": f"Bearer {token}"}
        # No proxy of this machine's environment stands between the demo and itself.
        with httpx2.Client(trust_env=False, timeout=SECONDS) as client:
            answer = client.request(method, self.address + path, headers=given, json=content)
        if answer.status_code != httpx2.codes.OK:
            raise Unavailable(f"the payment service answers {method} {path} with {answer.status_code}")
        told: dict[str, Any] = answer.json()
        return told


def payment_service(settings: Settings, tenant: str) -> PaymentService:
    """A service to be started, with the policy files that send a tenant's refunds to it.

    Raises:
        ConfigurationRefused: the shipped policies name no such channel any more.
    """
    service = PaymentService(free_port(), secrets.token_urlsafe(), secrets.token_urlsafe())
    shutil.copytree(ROOT / "policies", settings.policies)
    path = settings.policies / "channels.yaml"
    channels = load(path, Channels).channels
    moved = {"url": f"{service.address}/refunds", "orders_url": f"{service.address}/orders"}
    here = channel_of("payments", tenant, channels).model_copy(update=moved)
    written = Channels(channels={**channels, "payments": here})
    path.write_text(written.model_dump_json(indent=2), encoding="utf-8")
    os.environ[here.token_env] = service.token
    return service
