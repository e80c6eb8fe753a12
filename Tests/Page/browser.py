"""Drives a headless Chromium over the DevTools protocol through two pipes: JSON messages, each ended by NUL."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def find():
    """The path of an installed browser, or None. FK_CHROMIUM names another one."""
    named = os.environ.get("FK_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Failure(Exception):
    """A command that the browser refused, an exception in the page, or a wait that took too long."""


class Navigated(Failure):
    """The page was left while it was asked."""


class Browser:
    """One browser with a profile of its own, which is deleted at the end."""

    def __init__(self, path=None):
        self.profile = tempfile.mkdtemp(prefix="fk-page-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def descriptors():
            # The browser reads commands from descriptor 3 and writes answers to descriptor 4. The copies above them
            # come first, because the pipes may have these numbers themselves.
            first, second = os.dup(to_browser), os.dup(from_browser)
            high = [os.dup2(first, 200), os.dup2(second, 201)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            for number in high:
                os.close(number)

        # Not in a sandbox of its own: the tests run as root in containers, where the sandbox cannot be made. The page is ours.
        self.process = subprocess.Popen(
            [path or find(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", f"--user-data-dir={self.profile}",
             "--force-color-profile=srgb", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.answers = {}
        self.events = []

    def close(self):
        try:
            self.command("Browser.close")
            self.process.wait(5)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def command(self, method, session=None, **parameters):
        """Sends a command and returns its result."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        limit = time.monotonic() + 30
        while number not in self.answers:
            if not self.receive(limit - time.monotonic()):
                raise Failure(f"{method}: no answer from the browser in 30 s")
        answer = self.answers.pop(number)
        if "error" in answer:
            message = answer["error"].get("message", "")
            raise (Navigated if "navigated" in message else Failure)(f"{method}: {message}")
        return answer["result"]

    def receive(self, seconds):
        """Reads what the browser has sent. False if nothing came."""
        readable, _, _ = select.select([self.read_end], [], [], max(0, seconds))
        if not readable:
            return False
        data = os.read(self.read_end, 1 << 20)
        if not data:
            raise Failure("the browser has ended")
        self.buffer += data
        *messages, self.buffer = self.buffer.split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)
        return True

    def page(self, url, width=1280, height=800, dark=False):
        """A new tab of the given size that has loaded the URL."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ["Page", "Runtime", "Log", "Network"]:
            page.command(f"{domain}.enable")
        page.look(width, height, dark)
        page.go(url)
        return page


class Page:
    """A tab."""

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def command(self, method, **parameters):
        return self.browser.command(method, self.session, **parameters)

    def close(self):
        self.browser.command("Target.closeTarget", targetId=self.target)

    def look(self, width, height, dark=False, scale=1):
        """Sets the size of the window and the colours that the user prefers."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, url):
        self.command("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", f"{url} to load")

    def run(self, expression):
        """The value of a JavaScript expression; waits for promises."""
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise Failure(f"{details.get('exception', {}).get('description', details.get('text'))}\n  in: {expression[:300]}")
        return result["result"].get("value")

    def until(self, expression, what=None, seconds=60):
        """Waits until the expression is true, and returns its value."""
        limit = time.monotonic() + seconds
        while True:
            try:
                value = self.run(expression)
            except Navigated:
                value = None
            if value:
                return value
            if time.monotonic() > limit:
                raise Failure(f"waited {seconds} s for {what or expression}")
            # The browser has no notification for an expression: it is asked again.
            self.browser.receive(0.05)

    KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""), " ": ("Space", 32, " "), "ArrowDown": ("ArrowDown", 40, ""),
            "ArrowUp": ("ArrowUp", 38, ""), "ArrowRight": ("ArrowRight", 39, ""), "ArrowLeft": ("ArrowLeft", 37, ""), "Home": ("Home", 36, ""),
            "End": ("End", 35, ""), "PageDown": ("PageDown", 34, ""), "PageUp": ("PageUp", 33, "")}

    def key(self, *keys, shift=False, control=False):
        """Presses keys, one after the other."""
        modifiers = (8 if shift else 0) | (2 if control else 0)
        for key in keys:
            code, number, text = self.KEYS.get(key, ("", ord(key[0].upper()), key))
            values = dict(key=key, code=code, windowsVirtualKeyCode=number, modifiers=modifiers)
            if text and not control:
                values["text"] = text
            self.command("Input.dispatchKeyEvent", type="keyDown" if values.get("text") else "rawKeyDown", **values)
            self.command("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text):
        self.command("Input.insertText", text=text)

    def click(self, selector, index=0):
        """Clicks the middle of an element with the mouse."""
        box = self.until(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}]; if (!e) return null; e.scrollIntoView({{block: 'nearest', inline: 'nearest'}});"
            " const b = e.getBoundingClientRect(); return b.width > 0 ? [b.x + b.width / 2, b.y + b.height / 2] : null })()", f"{selector} to be visible")
        for kind in ["mousePressed", "mouseReleased"]:
            self.command("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self, path):
        """Writes what is in view as a PNG or WebP, by the end of the name."""
        form = {"format": "png"} if str(path).endswith(".png") else {"format": "webp", "quality": 90}
        Path(path).write_bytes(base64.b64decode(self.command("Page.captureScreenshot", **form)["data"]))

    def tree(self):
        """The nodes of the accessibility tree that a screen reader sees: role, name, properties."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        found = []
        for node in nodes:
            if node.get("ignored"):
                continue
            value = lambda key: node.get(key, {}).get("value", "")
            found.append({"role": value("role"), "name": value("name"), "description": value("description"), "value": value("value"),
                          **{one["name"]: one["value"].get("value") for one in node.get("properties", [])}})
        return found

    def problems(self):
        """What the page wrote to its console as an error, exceptions and refusals of the content security policy."""
        texts = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                texts.append(details.get("exception", {}).get("description", details.get("text")))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                texts.append(parameters["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
                texts.append(str(parameters["args"]))
        return texts
