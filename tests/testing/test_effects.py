"""Effects stay countable after a kill."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentcore.testing import EffectLog


def test_effects_are_read_back_in_order(tmp_path: Path) -> None:
    log = EffectLog(tmp_path / "effects")
    assert log.read() == []

    log.add("call_1")
    log.add("zahlt 5 €\x85")

    assert list(log) == ["call_1", "zahlt 5 €\x85"]
    assert len(log) == 2


def test_an_effect_survives_the_kill_that_follows_it(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from agentcore.testing import EffectLog\n"
        "EffectLog(sys.argv[1]).add('done'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = str(tmp_path / "effects")

    killed = subprocess.run([sys.executable, "-c", code, path], check=False)

    assert killed.returncode == -9
    assert EffectLog(path).read() == ["done"]


def test_an_effect_of_several_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one line"):
        EffectLog(tmp_path / "effects").add("a\nb")
