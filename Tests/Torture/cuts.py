"""Power cuts of one file over four connections, state by state: a run is recorded call by call, and what a disk may hold
after a cut is put together from it, in every combination. Then the next run, of another boot, has to bring the right bytes.

After a cut a file system has some of what was not synced, in almost any order. A state has

    info    the info file as of one of its records, or empty; its counters as of that record, or as of the cut
    names   the first so many of: part file made, marked, renamed to the final name
    data    the part's pages: all, none, some, or zeros in their place

Whatever a sync before the cut has put on the disk is there. `killed` states have the next run killed at one of its
first calls, and run once more in the same boot.
"""

import os
import random
import re
import shutil
import struct
import signal
import time
from pathlib import Path

from points import Outcome, Score
from sandbox import Sandbox, wait_until
from shim import Shim

NAME = "large.4600000.plain"
RATE = 12_000_000
BLOCK = 64 << 10
#: One run each, the last one of two of which the first was ended halfway.
KINDS = {"process": "process", "power": "power", "again": "process"}
#: What of the data is there, and whether the cut comes at the record in question or as late as it can.
DATA = [(data, end) for data in ("all", "zeros") for end in (False, True)] + [
    (data, True) for data in ("odd blocks", "first part", "last part", "nothing")]
MOST_RECORDS, NAMES, MOST_CALLS = 24, 4, 30


def checksum(data):
    """CRC-32C, as info files have it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def renumbered(info, inode):
    """An info file whose records tell of the finished file under another inode: that of the file made in its place."""
    size = struct.unpack_from("<I", info, 12)[0] if len(info) >= 64 else 0
    data = bytearray(info)
    for start in (64, 64 + size) if size else ():
        generation, length = struct.unpack_from("<QI", data, start)
        text = bytes(data[start + 16:start + 16 + length])
        if not length or b'"inode":' not in text:
            continue
        text = re.sub(rb'"inode":\d+', b'"inode":%d' % inode, text)
        head = struct.pack("<QI", generation, len(text))
        data[start:start + 16 + len(text)] = head + struct.pack("<I", checksum(head + text)) + text
    return bytes(data)


class File:
    def __init__(self):
        self.changes = []  # (operation, offset, bytes), or (operation, length, None) for a truncation
        self.marks = []  # (operation, name, value)

    def content(self, until, keeps=lambda operation, offset: True):
        """As of an operation. A write that is not kept leaves zeros."""
        data = bytearray()
        for operation, offset, piece in self.changes:
            if operation > until:
                break
            if piece is None:
                del data[offset:]
                data.extend(bytes(offset - len(data)))
            else:
                data.extend(bytes(max(0, offset + len(piece) - len(data))))
                data[offset:offset + len(piece)] = piece if keeps(operation, offset) else bytes(len(piece))
        return bytes(data)


class History:
    """What calls have done, in their order."""

    def __init__(self, log, box):
        self.box = box
        self.times, self.syncs, self.events = [], [], []  # events: (operation, path or None, file)
        self.folders, self.part, self.info = [], None, []
        names = {}
        data, place = log.read_bytes(), 0
        while place < len(data):
            end = data.index(b"\n", place)
            name, first, second, offset, count, moment = data[place:end].decode().split("\t")
            place = end + 1 + int(count)
            self.times.append(int(moment))
            self._add(len(self.times) - 1, name, first, second, int(offset), data[end + 1:place], names)
        self.end = len(self.times) - 1
        self.names = names
        # As the system has it, which is not quite when the call was noted.
        self.modified = os.stat(self.box.files / NAME).st_mtime_ns
        self.work_marks = [(name, os.getxattr(self.box.work, name)) for name in os.listxattr(self.box.work)]

    def _add(self, number, name, first, second, offset, piece, names):
        inside = first.startswith(str(self.box.base))
        if not inside:
            return
        file = names.get(first)
        if name.startswith("open"):
            if file is None:
                names[first] = File()
                if first.endswith(".fkpart"):
                    self.part = names[first]
                    self.events.append((number, first))
        elif name.startswith("mkdir"):
            self.folders.append(first)
        elif name.startswith("unlink"):
            names.pop(first, None)
        elif name.startswith(("rename", "link")):
            if file is not None:
                names[second] = file
                if name.startswith("rename"):
                    del names[first]
                if file is self.part:
                    self.events.append((number, second))
        elif file is None:
            return
        elif name in ("write", "pwrite"):
            file.changes.append((number, offset, piece))
            # A record, and not counters.
            if ".info" in first and len(piece) > 512:
                self.info.append((number, file))
        elif name.startswith("ftruncate"):
            file.changes.append((number, offset, None))
        elif name == "fsetxattr":
            file.marks.append((number, second.rsplit("/", 1)[-1], piece))
            if file is self.part:
                self.events.append((number, None))
        elif name.startswith(("fsync", "fdatasync")):
            self.syncs.append((number, first, file))

    def last_sync(self, until, is_it):
        return max((number for number, path, file in self.syncs if number <= until and is_it(path, file)), default=-1)


def history(world, kind):
    """Recorded once by each worker."""
    known = world.__dict__.setdefault("histories", {})
    if kind in known:
        return known[kind]
    box = Sandbox(world.fk, world.server, world.folder, [NAME], RATE)
    box.extra = {"FK_BOOT_ID": "a"}
    log = box.notes / "log"
    if kind == "again":
        shim = Shim(world.library, box.notes, log=log)
        process = box.start(*command(box, kind), shim=shim)
        assert wait_until(lambda: shim.received > 2_000_000, 20), "the first run does not come to its half"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    status, errors = box.run(*command(box, kind), shim=Shim(world.library, box.notes, log=log, name="last"))
    assert status == 0, errors
    known[kind] = History(log, box)
    return known[kind]


def command(box, kind):
    return ["get", *box.urls, "-d", box.files, "--durability", KINDS[kind], "-x", "4", "--no-progress", "--min-free", "0"]


class State:
    """One that a cut may leave; `record` 0 is an info file that is empty."""

    def __init__(self, found, record, is_last_word, names, data, at_end):
        self.found = found
        self.is_possible = record <= len(found.info) and names <= len(found.events) and len(found.info) > 0
        if not self.is_possible:
            return
        self.number, self.file = found.info[record - 1] if record else (-1, found.info[0][1])
        self.names, self.data = names, data
        named = found.events[names - 1][0] if names else -1
        first = max(self.number, named)
        #: The cut comes after all that is there: at once, or as late as no further sync puts more on the disk.
        self.cut = first
        if at_end or is_last_word:
            self.cut = min((number - 1 for number, _, _ in found.syncs if number > first), default=found.end)
        self.words = self.cut if is_last_word else self.number
        self.is_possible = self._is_possible(named)

    def _is_possible(self, named):
        found = self.found
        synced = found.last_sync(self.cut, lambda path, file: file is self.file)
        if any(self.number < number <= synced for number, file in found.info if file is self.file):
            return False
        # Another file in the info file's place: one that outgrew its slots. The name of the new one may be missing.
        folders = found.last_sync(
            self.cut, lambda path, file: file is found.part or path == str(found.box.files))
        return not any(named < number <= folders for number, _ in found.events)

    def put(self):
        """Makes the disk hold it."""
        found, box = self.found, self.found.box
        # The folder itself stays: a power cut does not move a work path, and one that was moved is not the owner of its parts.
        os.makedirs(box.work, 0o700, exist_ok=True)
        for entry in list(os.scandir(box.work)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        for name in os.listdir(box.files):
            os.unlink(box.files / name)
        for folder in found.folders:
            if folder.startswith(str(box.work)):
                os.makedirs(folder, 0o700, exist_ok=True)
        for path, file in found.names.items():
            if path.startswith(str(box.work)) and file not in [each for _, each in found.info]:
                write(path, file.content(found.end), found.times[found.end])
        for name, value in found.work_marks:
            os.setxattr(box.work, name, value)
        inode = self._put_part()
        info = [path for path in found.names if path.endswith(".info")][0]
        slots = self.file.content(self.number) if self.number >= 0 else b""
        if self.words > self.number >= 0:
            later = self.file.content(self.words)
            slots = slots[:-512] + later[-512:] if len(later) == len(slots) else slots
        write(info, renumbered(slots, inode), found.times[max(self.number, 0)])

    def _put_part(self):
        """Returns the inode; 0 without a file."""
        found, box = self.found, self.found.box
        inode = 0
        events = found.events[:self.names]
        path = next((path for _, path in reversed(events) if path), None)
        if path:
            synced = found.last_sync(self.cut, lambda _, file: file is found.part)
            quarter = len(found.part.content(found.end)) // 4
            keeps = {
                "all": lambda offset: True, "zeros": lambda offset: False,
                "odd blocks": lambda offset: offset // BLOCK % 2, "first part": lambda offset: offset < quarter,
                "last part": lambda offset: offset >= 3 * quarter, "nothing": lambda offset: False}[self.data]
            data = found.part.content(self.cut, lambda number, offset: number <= synced or keeps(offset))
            if self.data == "nothing":
                data = found.part.content(synced)
            times = [found.times[number] for number, _, _ in found.part.changes if number <= self.cut]
            is_last = len(times) == len(found.part.changes)
            moment = found.modified if is_last else times[-1] if times else found.times[events[0][0]]
            write(path, data, moment)
            inode = os.stat(path).st_ino
            marks = [mark for mark in found.part.marks if mark[0] <= (events[-1][0] if events else -1)]
            for _, name, value in marks[-1:]:
                words = value.split(b" ")
                if len(words) == 4:
                    # A part names the inode of its work path, a finished file its own.
                    words[2] = b"%d" % (os.stat(box.work).st_ino if words[3] == b"part" else inode)
                os.setxattr(path, name, b" ".join(words))
                os.utime(path, ns=(moment, moment))
        moment = found.times[events[-1][0]] if events else found.times[0]
        os.utime(box.files, ns=(moment, moment))
        return inode


def write(path, data, moment):
    Path(path).write_bytes(data)
    os.chmod(path, 0o600)
    os.utime(path, ns=(moment, moment))


def point(world, kind, record, is_last_word, names, data, at_end, killed):
    text = f"{kind}:{record}:{int(is_last_word)}:{names}:{data}:{int(at_end)}:{killed}"
    outcome = Outcome(text, about=f"{kind}: record {record}, names {names}, data: {data}, killed at {killed}")
    found = history(world, kind)
    outcome.values["records"] = len(found.info)
    state = State(found, record, is_last_word, names, data, at_end)
    outcome.reached = state.is_possible
    if not state.is_possible:
        return outcome
    box = found.box
    box.watch.close()
    state.put()
    box.linked = set()
    box.rewatch()
    box.extra = {"FK_BOOT_ID": "b"}
    is_named = any(path and not path.endswith(".fkpart") for _, path in found.events[:names])
    if kind == "power" and is_named:
        outcome.problems += [f"after the cut: {each}" for each in box.wrong_files()]
    if killed:
        shim = Shim(world.library, box.notes, killed, "after", calls="disk", name="killed")
        box.run(*command(box, kind), shim=shim)
        outcome.reached = shim.fired is not None
    for words in (command(box, kind), ["run", "--min-free", "0", "--no-progress"]):
        status, errors = box.run(*words)
        if status != 0:
            outcome.problems.append(f"{words[0]}: status {status}: {errors[-300:]}")
    # As in power.py: nobody promised anything about the moment after the cut, and a part without a record is kept.
    outcome.problems += [each for each in box.end() if "was taken away" not in each
                         and not (each.startswith("stray: .") and each.endswith(".fkpart.old"))]
    return outcome


def states(kind):
    for record in range(MOST_RECORDS + 1):
        for is_last_word in (False, True):
            for names in range(NAMES + 1):
                for data, at_end in DATA:
                    yield (kind, record, is_last_word, names, data, at_end, 0)
    for record in range(1, MOST_RECORDS + 1):
        for names in range(1, NAMES + 1):
            for killed in range(1, MOST_CALLS + 1):
                yield (kind, record, True, names, "zeros", True, killed)


def run(runner, options):
    for kind in KINDS:
        if options.work and kind not in options.work:
            continue
        score = Score(f"cuts {kind}")
        found = list(states(kind))
        if options.quick:
            # Not every worker records as many records: those of the first half are there always.
            possible = [state for state in found if state[1] <= 5]
            found = random.Random(options.seed).sample(possible, 2 * options.quick_count)
        runner.all(score, point, found)
        yield score


def again(runner, score, text, seed):
    kind, record, is_last_word, names, data, at_end, killed = text.split(":")
    runner.all(score, point, [(kind, int(record), is_last_word == "1", int(names), data, at_end == "1", int(killed))])
