"""Folders that are removed: Ctrl-C comes out as such, wherever it arrives."""

import os

import pytest

from fairagent.storage.files import remove_folder


@pytest.mark.parametrize("ignore_errors", [True, False])
@pytest.mark.parametrize("closed", [1, 2, 3])
def test_an_interruption_after_a_folder_was_closed_is_none_of_the_disk(tmp_path, monkeypatch, ignore_errors, closed):
    """`rmtree` closes it once more, and the error of that hides the interruption."""
    (tmp_path / "made" / "inner" / "innermost").mkdir(parents=True)
    close, count = os.close, 0

    def interrupted(descriptor):
        nonlocal count
        close(descriptor)
        count += 1
        if count == closed:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(tmp_path / "made", ignore_errors)
    monkeypatch.undo()
    remove_folder(tmp_path / "made", ignore_errors=False)
    assert not (tmp_path / "made").exists()
    remove_folder(tmp_path / "made")
    with pytest.raises(FileNotFoundError):
        remove_folder(tmp_path / "made", ignore_errors=False)
