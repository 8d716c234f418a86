"""Shells that really read the scripts of `musterd completion`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import Home
from tests.support.missing import program

BASH = """eval "$(musterd completion bash)" || exit 9
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_musterd_completion musterd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = 'musterd completion fish | source; complete -C "{words}"'
ZSH = """autoload -Uz compinit; compinit -u -D; eval "$(musterd completion zsh)" || exit 9
print -l ${{_comps[musterd]}}
COMP_WORDS="{words}" COMP_CWORD=1 _MUSTERD_COMPLETE=zsh_complete musterd
"""
SHELLS = {
    "bash": ("bash", "--norc", "-c", BASH),
    "fish": ("fish", "--no-config", "-c", FISH),
    "zsh": ("zsh", "-f", "-c", ZSH),
}


def ask(home: Home, shell: str, words: str) -> subprocess.CompletedProcess[str]:
    name, *options, script = SHELLS[shell]
    environ = home.environ() | {"HOME": str(home.folder.parent)}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    return subprocess.run(
        [program(name), *options, script.format(words=words)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("shell", list(SHELLS))
def test_a_shell_reads_the_script_and_completes(home: Home, shell: str) -> None:
    found = ask(home, shell, "musterd sched")
    assert (found.returncode, found.stderr) == (0, "")
    assert "schedules" in found.stdout
    assert "Traceback" not in found.stdout
    if shell == "zsh":
        assert found.stdout.splitlines()[0] == "_musterd_completion"


def test_bash_completes_kinds_and_states(home: Home) -> None:
    assert ask(home, "bash", "musterd enqueue rep").stdout == "report\n"
    assert ask(home, "bash", "musterd jobs --state su").stdout == "succeeded\n"
