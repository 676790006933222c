"""A software task in a sandbox: real files, real commands, and a real test run as the reward.

The agent works in a folder of its own. A turn is one shell command, or `submit`, which runs the test command and ends
the episode; reward 1 where that succeeds. Commands run as processes with limits on CPU time, memory, file size and
number of files, without the environment of this process, and without a network where the system lets them have a
network namespace of their own (`unshare`); elsewhere the sandbox does not start, unless `network` is allowed. It keeps
an agent from harm by accident: what must hold against malice belongs into a container, behind `remote`.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from rollart.exec.real.environments.protocol import Action, Observation

CUT_SHORT = 2000
"""Characters of a command's output that the agent sees."""
NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net")


class Sandbox:
    """One repository with something to mend."""

    def __init__(
        self,
        *,
        files: Mapping[str, str],
        task: str,
        test: str,
        hidden: Mapping[str, str] | None = None,
        command_timeout_s: float = 20.0,
        memory_mb: int = 512,
        network: bool = False,
    ) -> None:
        """`files`: path -> content. `test`: shell command that succeeds when all is well.

        `hidden`: files that are written just before the test, over whatever the agent has put there.
        """
        for path in (*files, *(hidden or {})):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError(f"path {path!r} leads out of the sandbox; must be relative and without ..")
        if not network and subprocess.run([*NO_NETWORK, "true"], capture_output=True, check=False).returncode:
            raise ValueError("this system gives no network namespace; allow `network`, or use `remote`")
        self._files, self._hidden = files, hidden or {}
        self._task, self._test = task, test
        self._timeout_s = command_timeout_s
        self._memory_bytes = memory_mb * 2**20
        self._prefix = () if network else NO_NETWORK
        self._folder: Path | None = None

    def reset(self, seed: int, member: int) -> Observation:
        """Lay the files into a new folder."""
        del seed, member
        self.close()
        self._folder = Path(tempfile.mkdtemp(prefix="rollart-sandbox-"))
        self._write(self._files)
        return Observation(text=f"{self._task}\nFiles: {' '.join(self._files)}\n$ ")

    def step(self, action: Action) -> Observation:
        """Run a command, or submit."""
        command = action.text.strip()
        if command == "submit":
            self._write(self._hidden)
            code, output = self._run(self._test)
            return Observation(text=output, reward=float(code == 0), done=True)
        code, output = self._run(command)
        return Observation(text=f"{output}\n[exit {code}]\n$ ")

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _write(self, files: Mapping[str, str]) -> None:
        assert self._folder is not None
        for name, content in files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(content, encoding="utf-8")

    def _run(self, command: str) -> tuple[int, str]:
        """Exit code and output; a command that takes too long is ended with all that it started."""
        assert self._folder is not None
        process = subprocess.Popen(
            [*self._prefix, "sh", "-c", command],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self._folder), "LANG": "C.UTF-8"},
            start_new_session=True,
            preexec_fn=self._limit,
        )
        try:
            output, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            _kill_session(process.pid)
            process.communicate()
            return 124, f"[stopped after {self._timeout_s:g} s]"
        _kill_session(process.pid)
        return process.returncode, output.decode("utf-8", "replace")[-CUT_SHORT:]

    def _limit(self) -> None:
        seconds = int(self._timeout_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (self._memory_bytes, self._memory_bytes))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 2**20, 64 * 2**20))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _kill_session(leader: int) -> None:
    """End what a command has left running in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
