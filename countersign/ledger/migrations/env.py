"""What alembic runs: the migrations, in the transaction that `schema.prepare` opened and on its connection."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
