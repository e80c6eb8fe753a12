"""SIGKILL at random moments, chosen by the seed, while a second process waits to take over and others send requests."""

import random
import signal
import subprocess
import time

from points import Outcome, Score
from sandbox import AGAIN, Sandbox, digest
from server import body

MEMBERS = ["empty.0.plain", "small.1024.plain", "middle.300000.plain", "endless.150000.chunked", "noetag.900000.noetag",
           "large.2600000.plain"]
ADDED, GOT = "added.400000.plain", "got.200000.plain"
RATE = 5_000_000
SECONDS = 0.7


def input_list(box, with_digests):
    lines = []
    for name in MEMBERS:
        lines.append(box.url_of(name))
        if with_digests:
            lines.append(f"  checksum=sha-256={digest(body(name))}")
    path = box.notes / "list"
    path.write_text("\n".join(lines) + "\n")
    return path


class Story:
    """One point: who does what, and when."""

    def __init__(self, box, chosen, outcome):
        self.box, self.chosen, self.outcome = box, chosen, outcome
        self.connections = chosen.choice((1, 4))
        self.kills = 0
        self.suspended = {}
        self.known = list(MEMBERS)

    def problem(self, text):
        self.outcome.problems.append(text)

    def execute(self):
        box, chosen = self.box, self.chosen
        status, errors = box.run(
            "barrel", "create", "b", "-i", input_list(box, chosen.random() < 0.5), "-d", box.files, "--retry", "1")
        assert status == 0, errors
        for part in range(chosen.choice((1, 1, 2))):
            self.part(part + 1)
            self.outcome.problems += [f"after part {part + 1}: {text}" for text in box.now(self.known, "b")]
            if self.outcome.problems:
                return
        self.finish()

    def part(self, number):
        """A run of the barrel with a death in it."""
        box, chosen = self.box, self.chosen
        owner = box.start("barrel", "run", "b", "-j", "4", "-x", self.connections, "--no-progress")
        events = [(chosen.uniform(0, SECONDS), "kill")]
        waits = chosen.random() < 0.6
        if waits:
            events.append((chosen.uniform(0, 0.15), "wait"))
            if chosen.random() < 0.4:
                events.append((events[0][0] + chosen.uniform(0, SECONDS), "kill waiting"))
        for what in ("add", "get", "suspend", "resume"):
            if chosen.random() < 0.4:
                events.append((chosen.uniform(0, SECONDS), what))
        begin = time.monotonic()
        waiting, asked = None, []
        for moment, what in sorted(events):
            time.sleep(max(0, begin + moment - time.monotonic()))
            match what:
                case "kill":
                    self.kill(owner)
                case "kill waiting":
                    self.kill(waiting)
                case "wait":
                    waiting = box.start("run", "-j", "4", "-x", self.connections, "--no-progress")
                case "add":
                    asked.append((what, ADDED, box.start("barrel", "add", "b", box.url_of(ADDED))))
                case "get":
                    words = ["get", box.url_of(GOT), "-b", "b", "-d", box.files, "--retry", "1", "--no-progress"]
                    asked.append((what, GOT, box.start(*words)))
                case "suspend" | "resume":
                    name = chosen.choice(MEMBERS[2:])
                    asked.append((what, name, box.start(what, box.url_of(name))))
        self.outcome.about += f"part {number}: " + ", ".join(f"{what} {moment:.3f}" for moment, what in sorted(events)) + "; "
        self.collect(asked, waiting)

    def kill(self, process):
        if process and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            self.kills += 1
        if process:
            process.communicate()

    def collect(self, asked, waiting):
        """Everybody who still lives comes to an end."""
        resumed = {name for what, name, _ in asked if what == "resume"}
        for what, name, process in asked:
            try:
                _, errors = process.communicate(timeout=25)
            except subprocess.TimeoutExpired:
                self.problem(f"fk {what} did not end")
                process.kill()
                continue
            if what in ("add", "get") and process.returncode == 0:
                self.known.append(name)
            elif what in ("add", "get") and process.returncode != 0 and name not in self.suspended:
                self.problem(f"fk {what}: status {process.returncode}: {errors[-200:]}")
            if what == "suspend" and process.returncode == 0:
                self.suspended[name] = True
        for name in resumed:
            self.suspended.pop(name, None)
        if waiting:
            try:
                _, errors = waiting.communicate(timeout=25)
                if waiting.returncode not in (0, -signal.SIGKILL):
                    self.problem(f"the waiting run: status {waiting.returncode}: {errors[-200:]}")
            except subprocess.TimeoutExpired:
                self.problem("the waiting run did not end")
                waiting.kill()
                waiting.communicate()
        self.known = sorted(set(self.known))
        found, _ = self.box.query("list")
        states = {task["url"]: task["state"] for task in found or []}
        for name in self.suspended:
            if (state := states.get(self.box.url_of(name))) not in ("suspend", "complete"):
                self.problem(f"{name} was suspended and is {state}")

    def finish(self):
        box = self.box
        box.run("resume", "--all")
        box.run("barrel", "add", "b", box.url_of(ADDED), box.url_of(GOT))
        status, errors = box.run("run", "-j", "4", "-x", self.connections, "--no-progress")
        if status != 0:
            self.problem(f"the last run: status {status}: {errors[-300:]}")
        self.outcome.problems += box.end("b")
        stops = self.kills + 4
        twice = box.sent_again()
        self.outcome.values["bytes sent twice"] = twice
        self.outcome.values["kills"] = self.kills
        if twice > stops * self.connections * AGAIN:
            self.problem(f"{twice} bytes were sent twice: {box.server.sent}")


def point(world, seed, number):
    chosen = random.Random(f"{seed}:{number}")
    box = Sandbox(world.fk, world.server, world.folder, MEMBERS + [ADDED, GOT], RATE)
    outcome = Outcome(str(number))
    try:
        Story(box, chosen, outcome).execute()
        return outcome
    finally:
        box.close()


def run(runner, options):
    score = Score("random")
    count = 20 if options.quick else options.count or 1000
    runner.all(score, point, ((options.seed, number) for number in range(1, count + 1)))
    yield score


def again(runner, score, text, seed):
    runner.all(score, point, [(seed, int(text))])
