"""A work path and a destination of their own, fk run in them, and what has to be true there at any time."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from server import body
from watch import Watch

#: What may be sent twice for each kill and connection.
AGAIN = 1 << 20


def digest(data):
    return hashlib.sha256(data).hexdigest()


def clean_environment(work, home, **more):
    """This process's environment with a work path of its own, and nothing else that fk would read."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FK_", "XDG_", "TORTURE_"))}
    return {**kept, "FK_WORK_PATH": str(work), "HOME": str(home), **more}


class Sandbox:
    """`names`: what is downloaded, by the name under which it has to be found in the end."""

    def __init__(self, fk, server, base, names, rate):
        self.fk, self.server, self.rate = fk, server, rate
        self.base = Path(tempfile.mkdtemp(prefix="point.", dir=base))
        self.work, self.files, self.notes = (self.base / name for name in ("work", "files", "notes"))
        self.files.mkdir()
        self.notes.mkdir()
        self.names = list(names)
        self.watch = Watch(self.files)
        self.linked = set()
        self.extra = {}
        self.processes = []
        server.restart_count()
        server.version = 0

    @property
    def urls(self):
        return [self.server.url(self.rate, name) for name in self.names]

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.watch.close()
        shutil.rmtree(self.base, ignore_errors=True)

    def rewatch(self):
        """After the file system was mounted anew."""
        self.watch = Watch(self.files)

    # -- Running

    def start(self, *words, shim=None, output=subprocess.DEVNULL):
        environment = clean_environment(self.work, self.base, **self.extra)
        if shim:
            environment.update(shim.environment)
        process = subprocess.Popen(
            [self.fk, *map(str, words)], env=environment, cwd=self.base, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def run(self, *words, shim=None, timeout=30, then=signal.SIGKILL):
        """(status, standard error). After `timeout` it gets the signal `then`; status is None when it was SIGKILL."""
        process = self.start(*words, shim=shim)
        try:
            _, errors = process.communicate(timeout=timeout)
            return process.returncode, errors
        except subprocess.TimeoutExpired:
            process.send_signal(then)
        try:
            _, errors = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, f"did not end within 10 s of signal {int(then)}"
        return (None, f"did not end within {timeout} s") if then == signal.SIGKILL else (process.returncode, errors)

    def query(self, *words):
        """The JSON document and problems."""
        done = subprocess.run(
            [self.fk, *words, "--json"], env=dict(os.environ, FK_WORK_PATH=str(self.work), **self.extra),
            capture_output=True, text=True, timeout=30)
        problems = [] if done.returncode == 0 else [f"{' '.join(words)}: status {done.returncode}"]
        if done.stderr:
            problems.append(f"{' '.join(words)} says: {done.stderr.strip()[:300]}")
        try:
            return json.loads(done.stdout), problems
        except ValueError:
            return None, problems + [f"{' '.join(words)}: no JSON: {done.stdout[:200]}"]

    # -- What must be true

    def present(self):
        return sorted(name for name in os.listdir(self.files) if not name.startswith("."))

    def wrong_files(self):
        """Names that stand there and are not right: of no task, or incomplete, or with other bytes."""
        problems = []
        for name in self.present():
            if name not in self.names:
                problems.append(f"{name} is nobody's")
                continue
            data = (self.files / name).read_bytes()
            if data != body(name):
                problems.append(f"{name} has {len(data)} of {len(body(name))} bytes"
                                if len(data) != len(body(name)) else f"{name} has wrong bytes")
        return problems

    def now(self, tasks=(), barrel=None):
        """Problems at any moment, when no engine runs: files, and the tasks and members that must be known."""
        problems, linked = self.watch.problems()
        self.linked |= linked
        problems += self.wrong_files()
        found, said = self.query("list")
        problems += said
        if found is not None:
            urls = [task["url"] for task in found]
            problems += [f"the task of {name} is lost" for name in tasks if self.url_of(name) not in urls]
            problems += [f"there are {urls.count(url)} tasks of {url}" for url in set(urls) if urls.count(url) > 1]
            problems += [
                f"{task['url']} counts as complete and is not there" for task in found
                if task["state"] == "complete" and not (task["path"] and os.path.exists(task["path"]))]
        if barrel:
            found, said = self.query("barrel", "show", barrel)
            problems += said
            members = [task["url"] for task in (found or {}).get("members", [])]
            problems += [f"the barrel lost {name}" for name in tasks if self.url_of(name) not in members]
        return problems

    def url_of(self, name):
        return self.server.url(self.rate, name)

    def end(self, barrel=None, links=False):
        """Problems when everything has to be there."""
        problems = self.now(self.names, barrel)
        if self.linked and not links:
            problems += [f"{name} did not come by a rename" for name in sorted(self.linked)]
        problems += [f"{name} is missing" for name in self.names if not (self.files / name).exists()]
        problems += [f"stray: {name}" for name in os.listdir(self.files) if name.startswith(".")]
        found, _ = self.query("list")
        for task in found or []:
            name = task["url"].rsplit("/", 1)[-1]
            if task["state"] != "complete":
                problems.append(f"{name} is {task['state']}")
            elif task["path"] != str(self.files / name) or task["received"] != len(body(name)):
                problems.append(f"{name}: the record says {task['received']} bytes in {task['path']}")
        if found is not None and len(found) != len(self.names):
            problems.append(f"{len(found)} tasks of {len(self.names)}")
        if barrel:
            found, _ = self.query("barrel", "list")
            sums = [each for each in found or [] if each.get("name") == barrel]
            if len(sums) != 1 or sums[0].get("complete") != len(self.names):
                problems.append(f"barrel list: {sums}")
        for folder, _, names in os.walk(self.work):
            inside = os.path.relpath(folder, self.work)
            for name in names:
                if inside in ("quarantine", "mailbox") or name.startswith(".tmp-") or name.endswith(".new"):
                    problems.append(f"stray in the work path: {inside}/{name}")
        return problems

    def sent_again(self):
        """Bytes sent more than once, of files that can be gone on with."""
        return sum(
            max(0, count - len(body(path))) for path, count in self.server.sent.items() if not path.endswith("chunked"))


def wait_until(condition, timeout, step=0.01):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False
