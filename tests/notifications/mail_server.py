"""A real mail server on loopback, with the answers that a test wants."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.notifications.notices import PASSWORD


@dataclass
class Post:
    """What has come in, and what the server answers."""

    port: int = 0
    mails: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    answer: Callable[[], str] = lambda: "250 taken"
    refused: dict[str, str] = field(default_factory=dict)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        answer = self.answer()
        if answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.mails.append(BytesParser().parsebytes(envelope.content))
            self.recipients.append(list(envelope.rcpt_tos))
        return answer

    def login(self, server: Any, session: Any, envelope: Any, mechanism: str, given: LoginPassword) -> AuthResult:
        self.logins.append((given.login, given.password))
        return AuthResult(success=given.password == PASSWORD.encode())


@contextmanager
def running_post(starttls: ssl.SSLContext | None = None, implicit: ssl.SSLContext | None = None) -> Iterator[Post]:
    """A server; with `starttls` it demands TLS and a login, with `implicit` it speaks nothing but TLS."""
    post = Post()

    class Server(Controller):
        def _trigger_server(self) -> None:
            """Its first connection, which needs the port that the system chose."""
            assert isinstance(self.server, asyncio.Server)
            self.port = post.port = self.server.sockets[0].getsockname()[1]
            super()._trigger_server()

        def factory(self) -> SMTP:
            if starttls is None:
                return SMTP(self.handler)
            return SMTP(
                self.handler, tls_context=starttls, require_starttls=True, auth_required=True, authenticator=post.login
            )

    server = Server(post, hostname="127.0.0.1", port=0, ssl_context=implicit)
    server.start()
    try:
        yield post
    finally:
        server.stop()


def certificate(folder: Path, address: str = "127.0.0.1") -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server of that address shows, and what a client needs to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / f"mail-{address}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=made.public_bytes(serialization.Encoding.PEM).decode())
