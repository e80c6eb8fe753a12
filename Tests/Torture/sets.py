"""SIGKILL at every call of `fk barrel publish`, and power cuts after some of them: the folder is absent, old or new, and the
next run leaves nothing beside it.

    first    the folder is published for the first time
    update   it is exchanged with an older set, in which another program has put a file
    links    the same on a file system that cannot exchange folders
    power    the update on ext4, synced; the power is cut after a call, and what was published stays
    process  the same without syncs: the next run has to make the new set
"""

import os
import random
import stat

import power
from points import Outcome, Score
from sandbox import Sandbox
from server import body
from shim import Shim

OLD = ["one.300000.plain", "two.20000.plain", "gone.5000.plain"]
NEW = ["one.300000.plain", "two.20000.plain", "come.9000.plain"]
FOREIGN = ("notes/own", b"of another program")
RATE = 0
MODES = ("before", "half", "after")
KILLS = ("first", "update", "links")
CUTS = ("power", "process")


class Set:
    """A barrel and the folder that it is published to."""

    def __init__(self, box, work):
        self.box, self.work = box, work
        self.parent = box.base / "sets"
        self.folder = self.parent / "model"
        self.durability = "power" if work == "power" else "process"
        box.names = OLD
        self.must("barrel", "create", "b", *box.urls, "-d", box.files)
        self.must("barrel", "run", "b", "--no-progress")
        if work != "first":
            self.must(*self.command)
            (self.folder / FOREIGN[0]).parent.mkdir()
            (self.folder / FOREIGN[0]).write_bytes(FOREIGN[1])
            self.must("barrel", "add", "b", box.url_of(NEW[2]))
            self.must("barrel", "run", "b", "--no-progress")
            self.must("barrel", "remove", "b", box.url_of(OLD[2]))
        self.old = None if work == "first" else self.files(OLD)
        self.new = self.files(OLD if work == "first" else NEW)

    @property
    def command(self):
        return ["barrel", "publish", "b", self.folder, "--durability", self.durability]

    def must(self, *words):
        status, errors = self.box.run(*words)
        assert status == 0, f"{words}: {errors}"

    def files(self, names):
        files = {name: body(name) for name in names}
        if self.work != "first":
            files[FOREIGN[0]] = FOREIGN[1]
        return files

    def present(self):
        """The files at the folder; None without one, or with an empty one."""
        if not self.folder.exists():
            return None
        files = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if name != ".fk-set" and stat.S_ISREG(os.lstat(path).st_mode):
                    with open(path, "rb") as file:
                        files[os.path.relpath(path, self.folder)] = file.read()
        return files or None

    def problems(self, mayBeAbsent):
        files = self.present()
        if files == self.old or files == self.new or files is None and mayBeAbsent:
            return []
        return [f"the folder is neither old nor new: {shown(files)}"]

    def end(self, files):
        """Problems when the folder has to have these files, and nothing is left."""
        found = self.present()
        problems = [] if found == files else [f"the folder is not right: {shown(found)}"]
        if self.parent.exists():
            problems += [f"left beside the folder: {name}" for name in os.listdir(self.parent) if name != "model"]
        for name in OLD + ([] if self.work == "first" else NEW[2:]):
            path = self.box.files / name
            if not path.exists() or path.read_bytes() != body(name):
                problems.append(f"the member's file {name} is not right")
        return problems


def shown(files):
    return files if files is None else ", ".join(f"{name} ({len(data)} bytes)" for name, data in sorted(files.items()))


def kill(world, work, mode, number):
    outcome = Outcome(f"{work}:{mode}:{number}")
    box = Sandbox(world.fk, world.server, world.folder, OLD, RATE)
    try:
        set = Set(box, work)
        links = work == "links"
        shim = Shim(world.library, box.notes, number, mode, calls="disk", links=links)
        status, errors = box.run(*set.command, shim=shim)
        if not shim.has_fired(outcome, status, errors):
            return outcome
        outcome.problems += [f"after the kill: {text}" for text in set.problems(links or work == "first")]
        again = Shim(world.library, box.notes, links=links, name="again")
        if number % 2:
            # The next engine of the work path finds what is left.
            status, errors = box.run("run", "--no-progress", shim=again)
            files = set.present()
            outcome.problems += [f"after the next run: {text}" for text in set.end(files) + set.problems(work == "first")]
        status, errors = box.run(*set.command, shim=again)
        if status != 0:
            outcome.problems.append(f"the second time: status {status}: {errors[-300:]}")
        outcome.problems += set.end(set.new)
        return outcome
    finally:
        box.close()


def cut(world, part, seed, number):
    chosen = random.Random(f"{seed}:{part}:{number}")
    if world.disk is None:
        world.disk = power.Disk(world.folder)
    disk, options = world.disk, chosen.choice(power.MOUNTS)
    outcome = Outcome(f"{part}:{number}", about=options)
    disk.mount(options)
    box = None
    try:
        box = Sandbox(world.fk, world.server, disk.mounted, OLD, RATE)
        box.extra = {"FK_BOOT_ID": "a"}
        set = Set(box, part)
        os.sync()
        at = chosen.randint(1, 60)
        shim = Shim(world.library, world.folder, at, "after", calls="disk")
        status, errors = box.run(*set.command, shim=shim)
        outcome.about += f", after call {at}: {shim.fired}"
        if chosen.random() < 0.5:
            power.persist(box, chosen)
        disk.cut()
        box.watch.close()
        disk.unmount()
        disk.mount(options)
        box.extra = {"FK_BOOT_ID": "b"}
        box.rewatch()
        if part == "power":
            # The old set may be back beside it: the next run removes it.
            problems = set.problems(False)
            if status == 0 and set.present() != set.new:
                problems.append("the set that was published is not there")
            outcome.problems += [f"after the cut, with status {status}: {text}" for text in problems]
        # Members that were not synced are compared first.
        for words in (["barrel", "run", "b", "--no-progress"], set.command):
            status, errors = box.run(*words)
            if status != 0:
                outcome.problems.append(f"{words[1]}: status {status}: {errors[-300:]}")
        outcome.problems += set.end(set.new)
        return outcome
    finally:
        if box:
            box.close()
        disk.unmount()


def run(runner, options):
    chosen = random.Random(options.seed)
    for work in KILLS:
        if options.work and work not in options.work:
            continue
        score = Score(f"sets {work}")
        runner.sweep(score, kill, work, MODES, options, chosen)
        yield score
    reason = power.missing(None)
    for part in CUTS:
        if options.work and part not in options.work:
            continue
        score = Score(f"sets {part}", skipped=reason or "")
        if not reason:
            count = 6 if options.quick else options.count or 200
            runner.all(score, cut, ((part, options.seed, number) for number in range(1, count + 1)))
        yield score


def again(runner, score, text, seed):
    parts = text.split(":")
    if parts[0] in CUTS:
        runner.all(score, cut, [(parts[0], seed, int(parts[1]))])
    else:
        runner.all(score, kill, [(parts[0], parts[1], int(parts[2]))])
