"""Power cuts: an ext4 image is mounted, fk runs on it, and at a random moment the file system is shut down without
writing what it still has in memory; then it is unmounted and mounted again. What is right then, and after the next run?

Two parts: `power`, where whatever fk said is complete has to be there at once, and `process`, the default, where all
has to be right after the next run, which is given another boot id.
"""

import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from points import Outcome, Score
from sandbox import Sandbox

SHUT_DOWN, WITHOUT_JOURNAL = 0x8004587D, 2
RATE = 12_000_000
NAMES = ["empty.0.plain", "small.1024.plain", "middle.300000.plain", "endless.150000.chunked", "noetag.900000.noetag",
         "large.1800000.plain"]
LARGE = ["small.1024.plain", "large.4600000.plain"]
#: What the journal says of data differs. With `writeback` a file may have its length before its bytes, and other bytes
#: in their place: there, the info file of a task that is not complete may be unreadable, and is put aside and told.
MOUNTS = ("data=ordered", "data=ordered,nodelalloc", "data=writeback", "data=writeback,nodelalloc")


class Disk:
    def __init__(self, folder, megabytes=96):
        self.folder = Path(folder)
        self.image, self.mounted = self.folder / "image", self.folder / "disk"
        self.mounted.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        call("mkfs.ext4", "-q", "-F", self.image)

    def mount(self, options):
        call("mount", "-o", f"loop,{options}", self.image, self.mounted)

    def cut(self):
        folder = os.open(self.mounted, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUT_DOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(folder)

    def unmount(self):
        for _ in range(100):
            if subprocess.run(["umount", str(self.mounted)], capture_output=True).returncode == 0:
                return
            time.sleep(0.02)
        raise RuntimeError("the image cannot be unmounted")


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()}")


def missing(fk):
    if os.geteuid() != 0:
        return "mounting needs root"
    for program in ("mkfs.ext4", "mount", "umount"):
        if not shutil.which(program):
            return f"{program} is not installed"
    with tempfile.TemporaryDirectory(prefix="fk-torture.") as folder:
        try:
            disk = Disk(folder, 16)
            disk.mount(MOUNTS[0])
        except RuntimeError as error:
            return f"no loop device can be mounted here ({error})"
        try:
            disk.cut()
        except OSError as error:
            return f"the file system cannot be shut down here ({error})"
        finally:
            disk.unmount()
    return None


def clean_up(folder):
    """Unmounts whatever a worker has left mounted under the folder."""
    for line in open("/proc/mounts"):
        place = line.split(" ")[1]
        if place.startswith(str(folder)):
            subprocess.run(["umount", "-l", place], capture_output=True)


def persist(box, chosen):
    """Something of it gets to the disk, as it would after some seconds: the journal, or one file."""
    found = [box.files / name for name in os.listdir(box.files)]
    for folder, _, names in os.walk(box.work):
        found += [Path(folder) / name for name in names]
    other = box.base / "other"
    other.write_bytes(b"x")
    path = other if chosen.random() < 0.6 or not found else chosen.choice(sorted(found))
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        os.fsync(file)
    except OSError:
        pass
    finally:
        os.close(file)


def completed(path):
    """URLs of which a complete line says that they are complete."""
    found = set()
    for line in path.read_text().split("\n")[:-1]:
        event = json.loads(line)
        if event.get("event") == "state" and event.get("state") == "complete":
            found.add(event["url"])
    return found


def point(world, part, seed, number):
    chosen = random.Random(f"{seed}:{part}:{number}")
    if world.disk is None:
        world.disk = Disk(world.folder)
    disk = world.disk
    options = chosen.choice(MOUNTS)
    connections = chosen.choice((1, 4))
    names = NAMES if connections == 1 else LARGE
    is_barrel = chosen.random() < 0.5
    outcome = Outcome(f"{part}:{number}", about=f"{options} -x {connections} {'barrel run' if is_barrel else 'get'}")
    disk.mount(options)
    box = None
    try:
        box = Sandbox(world.fk, world.server, disk.mounted, names, RATE)
        box.extra = {"FK_BOOT_ID": "a"}
        run = ["--durability", part, "-j", "4", "-x", connections, "--no-progress"]
        if is_barrel:
            status, errors = box.run("barrel", "create", "b", *box.urls, "-d", box.files)
            assert status == 0, errors
            words = ["barrel", "run", "b", *run]
        else:
            words = ["get", *box.urls, "-d", box.files, *run]
        # Made before, with its folder: what a task survives is another question than what the first seconds do.
        os.sync()
        said = Path(world.folder) / "said"
        end = time.monotonic() + chosen.uniform(0, 0.45 if connections == 1 else 0.3)
        pauses = sorted(chosen.uniform(0, 0.3) for _ in range(chosen.choice((0, 1, 2, 4))))
        begin = time.monotonic()
        with open(said, "w") as output:
            process = box.start(*words, "--json", output=output)
        for pause in pauses:
            if begin + pause < end:
                time.sleep(max(0, begin + pause - time.monotonic()))
                persist(box, chosen)
        time.sleep(max(0, end - time.monotonic()))
        promised = completed(said)
        disk.cut()
        process.kill()
        process.communicate()
        box.watch.close()
        disk.unmount()
        disk.mount(options)
        box.extra = {"FK_BOOT_ID": "b"}
        box.rewatch()
        outcome.values["files complete before"] = len(promised)
        if part == "power":
            outcome.problems += [f"after the cut: {text}" for text in after_cut(box, promised, options)]
        again = ["run", *run] if is_barrel else words
        status, errors = box.run(*again)
        if status != 0 or ("quarantine" in errors and "writeback" not in options):
            outcome.problems.append(f"the next run: status {status}: {errors[-300:]}")
        if not is_barrel:
            # It says of each task that is complete that it is; a run is what looks after all of them.
            status, errors = box.run("run", *run)
            if status != 0:
                outcome.problems.append(f"the run after it: status {status}: {errors[-300:]}")
        found = box.end("b" if is_barrel else None)
        # With the default nobody promised anything about the moment after the cut, so a file may be taken away again.
        # A part whose record did not reach the disk is kept, under a name that says so.
        outcome.problems += [text for text in found if (part == "power" or "was taken away" not in text)
                             and not (text.startswith("stray: .") and text.endswith(".fkpart.old"))
                             and not ("writeback" in options and "quarantine/" in text)]
        return outcome
    finally:
        if box:
            box.close()
        disk.unmount()


def after_cut(box, promised, options):
    problems = box.wrong_files()
    found, said = box.query("list")
    problems += [text for text in said if "writeback" not in options or " info file" not in text]
    states = {task["url"]: task["state"] for task in found or []}
    for url in sorted(promised):
        name = url.rsplit("/", 1)[-1]
        if not (box.files / name).exists():
            problems.append(f"{name} was complete and is gone")
        if states.get(url) != "complete":
            problems.append(f"{name} was complete and its task is {states.get(url, 'lost')}")
    quarantine = box.work / "quarantine"
    problems += [f"unreadable: {name}" for name in (os.listdir(quarantine) if quarantine.exists() else [])]
    return problems


def run(runner, options):
    for part in ("power", "process"):
        if options.work and part not in options.work:
            continue
        score = Score(f"power {part}")
        count = 6 if options.quick else options.count or 200
        runner.all(score, point, ((part, options.seed, number) for number in range(1, count + 1)))
        yield score


def again(runner, score, text, seed):
    part, number = text.split(":")
    runner.all(score, point, [(part, seed, int(number))])
