"""Mail: one message for one notice, handed to the configured server over verified TLS.

The same notice makes the same message at every attempt, `Message-ID` and date included, so that repeats can be dropped.
"""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from pydantic import SecretStr

from countersign.domain.address import Mailbox
from countersign.notifications.message import Message
from countersign.notifications.sending import TIME_LIMIT, Hopeless, TryAgain
from countersign.notifications.signature import DELIVERY


class MailSender:
    """Hands mail to one server."""

    def __init__(
        self, mailbox: Mailbox, user: str, password: SecretStr, tls: ssl.SSLContext | None = None,
        limit: timedelta = TIME_LIMIT,
    ) -> None:  # fmt: skip
        """`user` may be empty: then nobody logs in. `tls`: the system's authorities, if not given."""
        self._mailbox = mailbox
        self._user = user
        self._password = password
        self._tls = tls or ssl.create_default_context()
        self._limit = limit.total_seconds()

    def send(self, message: Message) -> None:
        """See `Sender.send`."""
        recipients = self._mailbox.recipients(message.audience)
        if not recipients:
            raise TryAgain("no recipient is configured for it any more")
        try:
            with self._connected() as server:
                refused = server.sendmail(
                    self._mailbox.sender, recipients, mail_of(message, self._mailbox.sender, recipients)
                )
        except smtplib.SMTPRecipientsRefused as failure:
            refused = failure.recipients
        except smtplib.SMTPResponseException as failure:
            raise _meaning_of([failure.smtp_code], "the server refused") from None
        except smtplib.SMTPNotSupportedError:
            raise Hopeless("the server offers no STARTTLS or no login") from None
        except (smtplib.SMTPException, OSError) as failure:
            # No detail: its text may repeat what the other side sent.
            raise TryAgain(f"no answer ({type(failure).__name__})") from None
        if refused:
            what = f"{len(refused)} of {len(recipients)} recipients refused"
            raise _meaning_of([code for code, _ in refused.values()], what)

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        server = self._server()
        ending = threading.Timer(self._limit, _cut_off, args=(server,))
        ending.daemon = True
        ending.start()
        try:
            server.connect(self._mailbox.host, self._mailbox.port)
            if self._mailbox.tls == "starttls":
                server.starttls(context=self._tls)
            if self._user:
                server.login(self._user, self._password.get_secret_value())
            yield server
            _leave(server)
        finally:
            ending.cancel()
            server.close()

    def _server(self) -> smtplib.SMTP:
        """Not yet connected. It knows the host, which is what the certificate is compared with."""
        made = (
            smtplib.SMTP_SSL(timeout=self._limit, context=self._tls)
            if self._mailbox.tls == "implicit"
            else smtplib.SMTP(timeout=self._limit)
        )
        made._host = self._mailbox.host  # type: ignore[attr-defined]  # set by the constructor only where it connects
        return made


def mail_of(message: Message, sender: str, recipients: Sequence[str]) -> bytes:
    """The message in plain text."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = f"[Countersign {message.notice.severity.value}] {message.sentence}"
    mail["Date"] = format_datetime(message.notice.at)
    digest = hashlib.sha256(message.id.encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{digest}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail[DELIVERY] = message.id
    mail.set_content(
        f"{message.sentence}\n\nTo read more: {message.command}\n\nMessage {message.id}. Nothing is decided by"
        " answering this mail.\n"
    )
    return mail.as_bytes()


def _meaning_of(codes: Sequence[int], what: str) -> TryAgain | Hopeless:
    """What answers other than success mean together: what may arrive later is tried again (RFC 5321, 4.2.1)."""
    told = f"{what} ({', '.join(map(str, sorted(set(codes))))})"
    return Hopeless(told) if all(code >= 500 for code in codes) else TryAgain(told)


def _cut_off(server: smtplib.SMTP) -> None:
    connection = server.sock
    if connection is not None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _leave(server: smtplib.SMTP) -> None:
    """The server has taken the mail: how it says goodbye changes nothing."""
    try:
        server.quit()
    except (smtplib.SMTPException, OSError):
        return
