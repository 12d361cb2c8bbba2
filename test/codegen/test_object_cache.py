"""Machine code kept on disk: found again, and never trusted where it may be another's or damaged."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from oracles.cases import make_case
from refusals import refused

from hodyn_ros import Robot
from hodyn_ros.codegen import object_cache
from hodyn_ros.codegen.object_cache import ObjectCache

CODE = bytes(range(200))


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    result = ObjectCache(tmp_path / "cache")
    result.put("key", CODE)
    return result


def entry_of(cache: ObjectCache) -> Path:
    (entry,) = cache.folder.iterdir()
    return entry


class TestEntries:
    def test_what_was_put_is_got(self, cache: ObjectCache) -> None:
        assert cache.get("key") == CODE
        assert ObjectCache(cache.folder).get("key") == CODE

    def test_the_last_one_counts(self, cache: ObjectCache) -> None:
        cache.put("key", CODE[::-1])
        assert cache.get("key") == CODE[::-1]
        assert len(list(cache.folder.iterdir())) == 1

    def test_another_key_has_none(self, cache: ObjectCache) -> None:
        assert cache.get("another key") is None

    def test_nobody_else_can_read_or_write_them(self, cache: ObjectCache) -> None:
        assert stat.S_IMODE(entry_of(cache).stat().st_mode) == 0o600
        assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700

    def test_damage_at_any_byte_is_found(self, cache: ObjectCache) -> None:
        entry = entry_of(cache)
        whole = entry.read_bytes()
        for place in range(len(whole)):
            for flipped in (0x01, 0x80):
                damaged = bytearray(whole)
                damaged[place] ^= flipped
                entry.write_bytes(damaged)
                assert cache.get("key") is None, f"byte {place}"
        entry.write_bytes(whole)
        assert cache.get("key") == CODE

    def test_a_part_or_more_than_the_whole_is_nothing(self, cache: ObjectCache) -> None:
        entry = entry_of(cache)
        whole = entry.read_bytes()
        for content in [whole[:length] for length in range(len(whole))] + [whole + b"x", whole + whole]:
            entry.write_bytes(content)
            assert cache.get("key") is None, f"{len(content)} bytes"

    def test_the_code_of_another_key_is_not_taken_for_it(self, cache: ObjectCache) -> None:
        mine = entry_of(cache)
        cache.put("another key", CODE[::-1])
        (other,) = set(cache.folder.iterdir()) - {mine}
        mine.write_bytes(other.read_bytes())
        assert cache.get("key") is None
        assert cache.get("another key") == CODE[::-1]

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
    def test_what_is_no_file_is_nothing_and_is_not_waited_for(
        self, cache: ObjectCache, make: Callable[[Path], object]
    ) -> None:
        entry = entry_of(cache)
        entry.unlink()
        make(entry)
        found: list[object] = ["nothing so far"]
        reader = Thread(target=lambda: found.append(cache.get("key")), daemon=True)
        reader.start()
        reader.join(10.0)
        assert found[1:] == [None]
        cache.put("key", CODE)  # which a folder of that name is in the way of
        assert cache.get("key") == (None if make is os.mkdir else CODE)

    def test_a_damaged_one_is_replaced(self, cache: ObjectCache) -> None:
        entry_of(cache).write_bytes(b"")
        cache.put("key", CODE)
        assert cache.get("key") == CODE


class TestTrust:
    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_a_file_that_others_can_write_is_not_trusted(self, cache: ObjectCache, mode: int) -> None:
        entry_of(cache).chmod(mode)
        assert cache.get("key") is None
        cache.put("key", CODE)
        assert cache.get("key") == CODE

    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
    def test_a_folder_that_others_can_write_is_not_trusted(self, cache: ObjectCache, mode: int) -> None:
        cache.folder.chmod(mode)
        assert cache.get("key") is None
        cache.folder.chmod(0o755)
        assert cache.get("key") == CODE

    def test_what_belongs_to_another_user_is_not_trusted(
        self, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
        assert cache.get("key") is None

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_a_file_or_folder_of_another_user_is_not_trusted(self, cache: ObjectCache, what: str) -> None:
        os.chown(entry_of(cache) if what == "file" else cache.folder, 12345, -1)
        assert cache.get("key") is None

    def test_a_link_to_a_file_that_others_can_write_is_not_trusted(
        self, cache: ObjectCache, tmp_path: Path
    ) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_bytes(entry_of(cache).read_bytes())
        elsewhere.chmod(0o666)
        entry = entry_of(cache)
        entry.unlink()
        entry.symlink_to(elsewhere)
        assert cache.get("key") is None


class TestTrouble:
    def test_a_folder_that_cannot_be_made_is_done_without(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        cache = ObjectCache(tmp_path / "file" / "cache")
        cache.put("key", CODE)
        assert cache.get("key") is None

    @pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
    def test_a_read_only_folder_is_done_without(self, cache: ObjectCache) -> None:
        cache.folder.chmod(0o500)
        cache.put("another key", CODE)
        assert cache.get("another key") is None
        assert cache.get("key") == CODE

    def test_a_write_that_fails_leaves_nothing_behind(
        self, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, target: Path) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        cache.put("key", CODE[::-1])
        assert cache.get("key") == CODE
        assert len(list(cache.folder.iterdir())) == 1

    def test_of_too_many_entries_those_go_that_were_asked_for_longest_ago(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(object_cache, "_LOOK_EVERY", 1)
        cache = ObjectCache(tmp_path / "cache", most=5)
        cache.put("kept", CODE)
        (cache.folder / "left-behind.tmp").write_bytes(CODE)
        for i in range(20):
            for age, file in enumerate(sorted(cache.folder.iterdir(), key=lambda f: -f.stat().st_mtime)):
                os.utime(file, (0, 1_000_000 - age))
            assert cache.get("kept") == CODE
            cache.put(f"key {i}", CODE)
        assert len(list(cache.folder.iterdir())) == 5
        assert [i for i in range(20) if cache.get(f"key {i}") == CODE] == [16, 17, 18, 19]

    def test_two_processes_may_write_at_once(self, tmp_path: Path) -> None:
        """Whatever is found under a key is whole."""
        work = (
            "from pathlib import Path\n"
            "from hodyn_ros.codegen.object_cache import ObjectCache\n"
            f"cache = ObjectCache(Path({str(tmp_path / 'cache')!r}))\n"
            "codes = [bytes([i]) * 10000 for i in range(3)]\n"
            "for round in range(150):\n"
            "    for i, code in enumerate(codes):\n"
            "        cache.put(f'key {i}', code)\n"
            "        assert cache.get(f'key {i}') == code\n"
        )
        processes = [subprocess.Popen([sys.executable, "-c", work]) for _ in range(2)]
        assert [process.wait(timeout=120) for process in processes] == [0, 0]
        assert len(list((tmp_path / "cache").iterdir())) == 3


class TestPlace:
    @pytest.fixture(autouse=True)
    def no_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HODYN_CACHE_DIR", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def test_it_is_chosen_by_the_user(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert ObjectCache.default().folder == tmp_path / ".cache" / "hodyn_ros"  # type: ignore[union-attr]
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert ObjectCache.default().folder == tmp_path / "xdg" / "hodyn_ros"  # type: ignore[union-attr]
        monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path / "mine"))
        assert ObjectCache.default().folder == tmp_path / "mine"  # type: ignore[union-attr]
        monkeypatch.setenv("HODYN_CACHE_DIR", "")
        assert ObjectCache.default() is None

    def test_its_size_is_chosen_by_the_user(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for asked, most in (("", 10_000), ("12", 12)):
            monkeypatch.setenv("HODYN_CACHE_ENTRIES", asked)
            assert ObjectCache.default().most == most  # type: ignore[union-attr]
        monkeypatch.setenv("HODYN_CACHE_ENTRIES", "-1")
        refused(lambda: ObjectCache.default(), "HODYN_CACHE_ENTRIES must be a whole number of entries, found")

    def test_a_relative_one_is_ignored_as_xdg_wants(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert ObjectCache.default().folder == tmp_path / ".cache" / "hodyn_ros"  # type: ignore[union-attr]

    def test_a_user_without_a_home_has_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def homeless() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", homeless)
        assert ObjectCache.default() is None


class TestCompiling:
    """The same through a robot: whatever is on disk, the torques are right."""

    case = make_case(70, 4, 1)

    def torques(self) -> np.ndarray:
        return Robot.from_screws(**self.case.tree.arguments()).compile(1)(self.case.q)

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path / "cache"))
        return tmp_path / "cache"

    def test_an_entry_is_used_again(self, folder: Path) -> None:
        self.torques()
        before = {file: file.stat().st_ino for file in folder.iterdir()}
        np.testing.assert_array_equal(self.torques(), self.torques())
        assert {file: file.stat().st_ino for file in folder.iterdir()} == before

    def test_damaged_ones_are_rebuilt(self, folder: Path) -> None:
        expected = self.torques()
        files = sorted(folder.iterdir())
        whole = [file.read_bytes() for file in files]
        for place in (0, 30, 100, -1):
            for file, content in zip(files, whole):
                file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place:][1:])
            np.testing.assert_array_equal(self.torques(), expected)
        for length in (0, 10, 51, 500):
            for file, content in zip(files, whole):
                file.write_bytes(content[:length])
            np.testing.assert_array_equal(self.torques(), expected)
        assert len(list(folder.iterdir())) == len(files)

    def test_entries_that_changed_places_are_rebuilt(self, folder: Path) -> None:
        expected = self.torques()
        Robot.from_screws(**make_case(71, 3, 1).tree.arguments()).compile(1)
        files = sorted(folder.iterdir())
        whole = [file.read_bytes() for file in files]
        for file, content in zip(files, whole[1:] + whole[:1]):
            file.write_bytes(content)
        np.testing.assert_array_equal(self.torques(), expected)

    @pytest.mark.parametrize("place", ["/dev/null/below", "", "/proc/no/such/place"])
    def test_no_folder_is_needed(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = self.torques()
        monkeypatch.setenv("HODYN_CACHE_DIR", place)
        np.testing.assert_array_equal(self.torques(), expected)
