"""Builds shim.c and says how to run a program under it."""

import os
import shutil
import subprocess
from pathlib import Path


def build(folder):
    """The path of the library, or raises `RuntimeError` saying why there is none."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if not compiler:
        raise RuntimeError("there is no C compiler")
    library = Path(folder) / "torture.so"
    done = subprocess.run(
        [compiler, "-O1", "-Wall", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).parent / "shim.c"), "-ldl"],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"shim.c cannot be compiled: {done.stderr.strip()[-300:]}")
    return str(library)


class Shim:
    """One run's orders and what came of them. `lasts`: every call from the N-th on fails. `calls`: "all" or "disk"."""

    def __init__(self, library, folder, at=0, action="", lasts=False, calls="all", links=False, slow=False, short=False,
                 name="state", log=None):
        self.file = Path(folder) / name
        self.file.write_bytes(bytes(4096))
        self.environment = {
            "LD_PRELOAD": library, "TORTURE_STATE": str(self.file), "TORTURE_AT": str(at), "TORTURE_ACTION": action,
            "TORTURE_LASTS": "on" if lasts else "once", "TORTURE_CALLS": calls, "TORTURE_LINKS": "1" if links else "0",
            "TORTURE_ENDS": "slow" if slow else "", "TORTURE_WRITES": "short" if short else ""}
        if log:
            self.environment["TORTURE_LOG"] = str(log)

    @property
    def calls(self):
        return int.from_bytes(self.file.read_bytes()[:8], "little")

    @property
    def received(self):
        """Bytes that were written to part files."""
        return int.from_bytes(self.file.read_bytes()[16:24], "little")

    @property
    def short_writes(self):
        return int.from_bytes(self.file.read_bytes()[24:32], "little")

    @property
    def fired(self):
        """The call it acted on, as text; None while it has not."""
        data = self.file.read_bytes()
        if not int.from_bytes(data[8:16], "little"):
            return None
        return data[32:].split(b"\0")[0].decode(errors="replace")

    def has_fired(self, outcome, status, errors):
        """Writes into the outcome what came of a kill; false when the run ended without one."""
        outcome.about = self.fired or ""
        outcome.values["calls"] = self.calls
        outcome.reached = self.fired is not None
        if not outcome.reached and status != 0:
            outcome.problems.append(f"not killed, and status {status}: {errors[-300:]}")
        return outcome.reached
