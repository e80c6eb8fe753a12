"""Runs one command and says what it cost."""

import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Cost:
    seconds: float
    processor: float
    megabytes: float


@dataclass
class Series:
    """The costs of one program's runs on one work."""

    costs: list = field(default_factory=list)

    def median(self, what):
        return statistics.median(getattr(cost, what) for cost in self.costs)

    def ends(self, what):
        values = [getattr(cost, what) for cost in self.costs]
        return min(values), max(values)


class Failed(Exception):
    pass


def run(words, folder, timeout=300, statuses=(0,)):
    """Wall seconds by this clock; processor time and most memory by time(1), because a child's peak as this process
    would read it includes this process's own pages before exec."""
    with tempfile.NamedTemporaryFile("r") as times, tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(
            ["/usr/bin/time", "-o", times.name, "-f", "%U %S %M"] + [str(word) for word in words],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        # Not wait(timeout=): that looks every 50 ms and no more often.
        guard = threading.Timer(timeout, lambda: os.killpg(process.pid, signal.SIGKILL))
        guard.start()
        status = process.wait()
        seconds = time.perf_counter() - begin
        guard.cancel()
        if status not in statuses:
            output.seek(0)
            said = output.read()[-400:].decode(errors="replace")
            raise Failed(f"{' '.join(map(str, words))[:200]}: status {status}: {said}")
        user, system, kilobytes = times.read().split("\n")[-2].split()
        return Cost(seconds, float(user) + float(system), int(kilobytes) / 1024)
