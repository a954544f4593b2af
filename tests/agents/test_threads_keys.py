"""The keys of checkpoints: what the setting may say, and the file where nothing is set."""

from __future__ import annotations

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from countersign import bootstrap
from countersign.agents.checkpoint_keys import SETTING, CheckpointRefused, keys_in, keys_in_file
from countersign.domain.errors import ConfigurationRefused, Unavailable
from countersign.settings import Settings

ONE, TWO = (base64.b64encode(letter * 32).decode() for letter in (b"1", b"2"))
SHORT = base64.b64encode(b"3" * 16).decode()


def test_the_first_key_encrypts_and_all_decrypt() -> None:
    before = keys_in(f"2026-10={ONE}")
    sealed = before.encrypt(b"draft", "here")

    now = keys_in(f"2026-11={TWO}, 2026-10={ONE}\n")

    assert now.first == "2026-11"
    assert now.decrypt("2026-10", sealed, "here") == b"draft"
    with pytest.raises(CheckpointRefused, match="another draft"):
        now.decrypt("2026-10", sealed, "elsewhere")


@pytest.mark.guarantee("G46")
@pytest.mark.parametrize(
    "text",
    [ONE, f"k1={ONE},", f"k1:{ONE}", f"k1={SHORT}", f"K1={ONE}", f"={ONE}", f"k1={ONE}!", f"k1={ONE},k1={TWO}",
     f"k1={ONE},k2={TWO[:-1]}", "k1=é", ","],
)  # fmt: skip
def test_a_malformed_setting_is_refused_by_name_and_never_repeated(text: str) -> None:
    settings = Settings(thread_keys=text, _env_file=None)

    with pytest.raises(ConfigurationRefused, match=r"COUNTERSIGN_THREAD_KEYS: entry [12] .*; ") as refused:
        bootstrap.thread_keys(settings)

    assert not [part for part in (ONE, TWO, TWO[:-1], SHORT) if part in refused.value.message]
    assert ONE not in repr(settings)


def test_without_a_setting_one_key_is_made_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, _env_file=None)
    file = settings.keys_folder / "threads.keys"

    # As worker processes that start at once.
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(bootstrap.thread_keys, [settings] * 8))

    assert len({each.first for each in made}) == 1
    sealed = made[0].encrypt(b"draft", "here")
    assert {each.decrypt(each.first, sealed, "here") for each in [*made, bootstrap.thread_keys(settings)]} == {b"draft"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["threads.keys"]


def test_a_key_that_is_missing_is_to_be_put_where_the_others_stand(tmp_path: Path) -> None:
    """Beside a file that is in use the setting would hide every key of it."""
    sealed = keys_in(f"2026-10={ONE}").encrypt(b"draft", "here")
    file = tmp_path / "threads.keys"

    for keys, where in ((keys_in(f"2026-11={TWO}"), SETTING), (keys_in_file(file), str(file))):
        with pytest.raises(CheckpointRefused) as refused:
            keys.decrypt("2026-10", sealed, "here")
        assert "encrypted with key '2026-10'" in refused.value.message
        assert f"add that one, as ID=KEY, to {where}, behind the first" in refused.value.message


def test_a_key_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    file = tmp_path / "threads.keys"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigurationRefused, match="no text with keys"):
        keys_in_file(file)
    file.write_text("", encoding="ascii")
    with pytest.raises(ConfigurationRefused, match=r"threads\.keys: entry 1"):
        keys_in_file(file)
    with pytest.raises(Unavailable, match="COUNTERSIGN_THREAD_KEYS"):
        keys_in_file(file / "below")
