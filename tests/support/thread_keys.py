"""Keys for checkpoints that tests make: the same in every process, so that a draft can go on in another one."""

from __future__ import annotations

from countersign.agents.checkpoint_keys import ThreadKeys

THREAD_KEYS = ThreadKeys({"test-1": b"k" * 32})
