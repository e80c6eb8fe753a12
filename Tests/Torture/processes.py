"""Eight processes on one work path that add, run, get, suspend, resume, cancel, retry and list as the seed says; some of
them are killed.

Nothing that was added may be lost, no list may be torn, and there is never a second engine. In the end one `fk run`
completes everything."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from points import Outcome, Score
from sandbox import Sandbox
from server import body

ACTORS = 8
RATE = 3_000_000
SIZES = [0, 900, 40_000, 300_000, 1_500_000]
KINDS = ["plain"] * 6 + ["noetag", "chunked"]
#: How often each is done.
ACTS = {"add": 20, "get": 12, "run": 14, "suspend": 10, "resume": 12, "cancel": 6, "retry": 6, "list": 20, "show": 8}
KILLED = {"add": 0.1, "get": 0.25, "run": 0.35}
#: Longer than any act may take without being stuck.
PATIENCE = 40


class OpenParts(threading.Thread):
    """Looks whether two processes hold part files of the folder open at the same time: only an engine does."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = str(folder)
        self.alive = {}
        self.looks, self.problems = 0, []
        self.ended = threading.Event()

    def parts(self, pid):
        try:
            descriptors = os.scandir(f"/proc/{pid}/fd")
        except OSError:
            return 0
        count = 0
        with descriptors:
            for each in descriptors:
                try:
                    count += os.readlink(each.path).startswith(self.folder + "/.")
                except OSError:
                    pass
        return count

    def run(self):
        while not self.ended.wait(0.02):
            self.looks += 1
            holders = [pid for pid in list(self.alive) if self.parts(pid)]
            # One may have ended while the next one began: only who still has some counts, the first looked at last.
            if len(holders) > 1 and len([pid for pid in reversed(holders) if self.parts(pid)]) > 1:
                self.problems.append(f"two engines: {', '.join(self.alive.get(pid, '?') for pid in holders)}")


class Story:
    def __init__(self, box, seed, seconds, outcome):
        self.box, self.seed, self.outcome = box, seed, outcome
        self.end_at = time.monotonic() + seconds
        self.lock = threading.Lock()
        #: Added with status 0, and all that anybody may have added.
        self.known, self.named = set(), []
        self.kills = self.lists = self.acts = 0
        self.watch = OpenParts(box.files)

    def problem(self, text):
        with self.lock:
            self.outcome.problems.append(text)

    def execute(self):
        box = self.box
        status, errors = box.run("barrel", "create", "b", "-d", box.files, "--retry", "2")
        assert status == 0, errors
        self.watch.start()
        actors = [threading.Thread(target=self.act, args=(number,)) for number in range(ACTORS)]
        for each in actors:
            each.start()
        for each in actors:
            each.join()
        self.watch.ended.set()
        self.watch.join()
        self.outcome.problems += self.watch.problems[:3]
        self.outcome.values.update(
            acts=self.acts, lists=self.lists, kills=self.kills, tasks=len(self.known))
        self.finish()

    # -- One actor

    def act(self, number):
        chosen = random.Random(f"{self.seed}:{number}")
        made = 0
        try:
            while time.monotonic() < self.end_at:
                what, = chosen.choices(list(ACTS), ACTS.values())
                fresh = f"{number}-{made}.{chosen.choice(SIZES)}.{chosen.choice(KINDS)}"
                if what in ("add", "get"):
                    made += 1
                self.perform(what, chosen, fresh)
        except Exception as error:  # the actor failed, and with it the test
            self.problem(f"actor {number}: {error!r}")

    def perform(self, what, chosen, fresh):
        with self.lock:
            self.acts += 1
            known, named = sorted(self.known), list(self.named)
            if what in ("add", "get"):
                self.named.append(fresh)
        if what == "list":
            return self.list(known)
        if what == "show":
            _, problems = self.query("barrel", "show", "b")
            return self.told(problems)
        if what in ("suspend", "resume", "cancel", "retry"):
            if not named:
                return
            name = chosen.choice(named)
            words = ["--all"] if chosen.random() < 0.2 else [self.box.url_of(name)]
            status, errors = self.command(what, *words)
            # 1: it does not apply; 4: that task is not there yet.
            if status not in (0, 1, 4):
                self.problem(f"{what} {words}: status {status}: {errors[-300:]}")
            return
        if what in ("add", "get") and named and chosen.random() < 0.15:
            fresh = chosen.choice(named)
        words = {
            "add": ["barrel", "add", "b", self.box.url_of(fresh)],
            "get": ["get", self.box.url_of(fresh), "-b", "b", "--retry", "2", "-d", self.box.files, "--no-progress"],
            "run": ["run", "-j", "6", "--no-progress"],
        }[what]
        self.start(what, words, fresh, chosen)

    def start(self, what, words, name, chosen):
        kill_after = chosen.uniform(0, 1.5) if chosen.random() < KILLED[what] else None
        stop_after = chosen.uniform(0.2, 4)
        process = self.box.start(*words)
        self.watch.alive[process.pid] = f"{what} {name}"
        try:
            status, errors = self.outlast(process, what, kill_after, stop_after)
        finally:
            self.watch.alive.pop(process.pid, None)
        if status is None:
            self.problem(f"{what} {name} did not end within {PATIENCE} s of SIGTERM")
        elif status == -signal.SIGKILL and kill_after is not None:
            with self.lock:
                self.kills += 1
        # 1: it was suspended or cancelled meanwhile. 143: the SIGTERM of this test.
        elif status not in ((0,) if what == "add" else (0, 1, 143)):
            self.problem(f"{what} {name}: status {status}: {errors[-300:]}")
        elif status == 0 and what != "run":
            with self.lock:
                self.known.add(name)
            if what == "get":
                self.has_arrived(name, errors)

    def outlast(self, process, what, kill_after, stop_after):
        try:
            if kill_after is None and what == "add":
                stop_after = PATIENCE
            _, errors = process.communicate(timeout=stop_after if kill_after is None else kill_after)
            return process.returncode, errors
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM if kill_after is None else signal.SIGKILL)
        try:
            _, errors = process.communicate(timeout=PATIENCE)
            return process.returncode, errors
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, ""

    def has_arrived(self, name, errors):
        path = self.box.files / name
        if not path.exists():
            self.problem(f"get ended with 0 and {name} is not there: {errors[-200:]}")
        elif path.read_bytes() != body(name):
            self.problem(f"get ended with 0 and {name} has wrong bytes")

    def command(self, *words):
        return self.box.run(*words, timeout=PATIENCE)

    # -- What must be true

    def query(self, *words):
        try:
            return self.box.query(*words)
        except subprocess.TimeoutExpired:
            return None, [f"{' '.join(words)} did not end"]

    def told(self, problems):
        for text in problems:
            self.problem(text)

    def list(self, known):
        """`known`: what had been added when the list was asked for."""
        found, problems = self.query("list")
        self.told(problems)
        with self.lock:
            self.lists += 1
        if found is None:
            return
        urls = [task["url"] for task in found]
        self.told([f"a list lacks {name}" for name in known if self.box.url_of(name) not in urls])
        self.told([f"a list has {url} twice" for url in set(urls) if urls.count(url) > 1])
        for task in found:
            if task["state"] == "complete" and not (task["path"] and os.path.exists(task["path"])):
                self.problem(f"a list has {task['url']} as complete, and it is not there")

    def finish(self):
        box = self.box
        for verb in ("resume", "retry"):
            status, errors = self.command(verb, "--all")
            if status not in (0, 1, 4):
                self.problem(f"{verb} --all: status {status}: {errors[-300:]}")
        status, errors = box.run("run", "-j", "16", "--no-progress", timeout=120)
        if status != 0:
            self.problem(f"the last run: status {status}: {errors[-400:]}")
        # Whoever was killed while adding may have added, or have left a message that only the last run has read.
        found, _ = self.query("list")
        names = {task["url"].rsplit("/", 1)[-1] for task in found or []}
        box.names = sorted(names)
        self.told([f"{name} is lost" for name in sorted(self.known - names)])
        self.told([f"{name} is nobody's" for name in sorted(names - set(self.named))])
        # Every member was added to the barrel with the same request that made it.
        self.outcome.problems += box.end("b")


def point(world, seed, seconds):
    box = Sandbox(world.fk, world.server, world.folder, [], RATE)
    outcome = Outcome(str(seed))
    try:
        Story(box, seed, seconds, outcome).execute()
        return outcome
    finally:
        box.close()


def run(runner, options):
    score = Score("processes")
    seconds = 5 if options.quick else options.seconds
    runner.all(score, point, [(options.seed, seconds)])
    yield score


def again(runner, score, text, seed):
    runner.all(score, point, [(int(text), 60)])
