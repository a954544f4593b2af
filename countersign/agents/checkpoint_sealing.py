"""What lies in a store of checkpoints: sealed values, bound to their thread and place.

It stands apart because LangGraph's savers encrypt less than everything: metadata stays in clear, on PostgreSQL plain
values too, and a row that is not encrypted is taken. So each checkpoint goes into its row as one sealed value together
with its metadata, and each pending write with its place; what remains in clear are ids, names of channels, and times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from countersign.agents.checkpoint_keys import CIPHER, CheckpointRefused, ThreadKeys, bound_to, key_of
from countersign.domain.values import Value

WHOLE = "sealed"
"""The one channel of a checkpoint as it is stored: the checkpoint itself, and its metadata."""
PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id")
INSTEAD = "take the run over and release it: the agent then begins the version anew"


class SealedSerializer(SerializerProtocol):
    """The library's serializer within a thread's encryption; its type column says how: `msgpack+aes256gcm+KEY`.

    Not the library's `EncryptedSerializer`: that takes rows that are not encrypted.
    """

    def __init__(self, keys: ThreadKeys, thread: str, form: type[Value]) -> None:
        self._keys = keys
        self._thread = thread
        # A checkpoint is data: apart from the library's own safe types, only the draft is built from it.
        self._plain = JsonPlusSerializer(allowed_msgpack_modules=[(form.__module__, form.__name__)])

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Type and sealed bytes, under the first key."""
        kind, data = self._plain.dumps_typed(obj)
        sealed_as = f"{kind}+{CIPHER}+{self._keys.first}"
        return sealed_as, self._keys.encrypt(data, bound_to(self._thread, sealed_as))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value; CheckpointRefused where it is not encrypted, changed, or of another thread."""
        sealed_as, sealed = data
        key = key_of(sealed_as)
        if not key:
            raise CheckpointRefused("it is not encrypted")
        opened = self._keys.decrypt(key, sealed, bound_to(self._thread, sealed_as))
        return self._plain.loads_typed((sealed_as.partition("+")[0], opened))


class SealedSaver(BaseCheckpointSaver[str], ABC):
    """Goes before a saver of the library: nothing reaches its tables but sealed, nor comes from them but as written.

    Each write is made within `_held`, which is the place to refuse it.
    """

    thread: str

    @abstractmethod
    def _held(self) -> AbstractAsyncContextManager[None]:
        """What each write is made within; it refuses one that this attempt may make no more."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002  # what is stored has one channel, with a version of its own
    ) -> RunnableConfig:
        """Store a checkpoint with its metadata as one value."""
        kept = {"checkpoint": checkpoint, "metadata": get_serializable_checkpoint_metadata(config, metadata)}
        # A new version each time, or PostgreSQL would keep the value that was there under the same id.
        versions: ChannelVersions = {WHOLE: self.get_next_version(None, None)}
        bare: Checkpoint = {
            "v": checkpoint["v"], "id": checkpoint["id"], "ts": checkpoint["ts"], "channel_values": {WHOLE: kept},
            "channel_versions": versions, "versions_seen": {}, "updated_channels": None,
        }  # fmt: skip
        async with self._held():
            return await super().aput(_place(config), bare, {}, versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes, each with its place: a person's answer is good for the call that it was given to."""
        checkpoint = config["configurable"]["checkpoint_id"]
        placed = [(channel, [checkpoint, task_id, channel, value]) for channel, value in writes]
        async with self._held():
            await super().aput_writes(config, placed, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint as it was put; CheckpointRefused where it is not."""
        with self._refusing():
            found = await super().aget_tuple(config)
            return None if found is None else _opened(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The thread's checkpoints, newest first; they cannot be searched by their metadata, which is sealed."""
        if filter:
            raise NotImplementedError("checkpoints are encrypted: their metadata cannot be searched")
        with self._refusing():
            async for found in super().alist(config, before=before, limit=limit):
                yield _opened(found)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """By the checkpoints one after the other: the savers' own short cuts look into the tables."""
        return await BaseCheckpointSaver.aget_delta_channel_history(self, config=config, channels=channels)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except CheckpointRefused as refused:
            raise CheckpointRefused(
                f"checkpoint of {self.thread}: {refused.message}; nothing goes on from it: {INSTEAD}"
            ) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            # What the library stumbles over in columns that lie in clear.
            raise CheckpointRefused(
                f"checkpoint of {self.thread}: it was changed; nothing goes on from it: {INSTEAD}"
            ) from None


def _place(config: RunnableConfig) -> RunnableConfig:
    """The ids alone: whatever else a config holds would be copied into the metadata."""
    given = config["configurable"]
    return {"configurable": {name: given[name] for name in PLACE if name in given}}


def _opened(found: CheckpointTuple) -> CheckpointTuple:
    kept = found.checkpoint["channel_values"].get(WHOLE)
    row = found.config["configurable"]["checkpoint_id"]
    if kept is None or found.checkpoint["channel_values"].keys() != {WHOLE}:
        raise CheckpointRefused("it is not encrypted")
    if kept["checkpoint"]["id"] != row:
        raise CheckpointRefused("it was changed: another step of the draft lies in its place")
    writes = [
        (task, channel, _written(row, task, channel, value)) for task, channel, value in found.pending_writes or ()
    ]
    return found._replace(
        checkpoint=cast(Checkpoint, kept["checkpoint"]),
        metadata=cast(CheckpointMetadata, kept["metadata"]),
        pending_writes=writes,
    )


def _written(row: str, task: str, channel: str, value: Any) -> Any:
    *place, written = value
    if place != [row, task, channel]:
        raise CheckpointRefused("it was changed: what belongs to another step of the draft lies in its place")
    return written
