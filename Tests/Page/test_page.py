#!/usr/bin/env python3
"""Tests of the page of `fk rpc` in a headless Chromium, against a fake server.

    Tests/Page/test_page.py [-v] [Class.test]

test_program.py drives the page against the real program. Without a Chromium the tests are skipped.
"""

import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import browser
import look
from fake import PAGE, Fake

WIDTHS = [(1280, 800), (768, 1024), (390, 844)]
LOADED = "document.querySelectorAll('.task:not([hidden]):not(.blank)').length > 3 && !document.querySelector('.task.blank:not([hidden])')"
NAMES = "[...document.querySelectorAll('.task:not([hidden])')].sort((a, b) => a.entry.position - b.entry.position).map((row) => row.querySelector('.name b').textContent)"


def text_of(selector):
    return f"(document.querySelector('{selector}')?.textContent ?? '')"


class FileTests(unittest.TestCase):
    """The three files as they are."""

    def files(self):
        return {path.name: path.read_text() for path in PAGE.iterdir()}

    def test_three_files_under_155_kb(self):
        files = self.files()
        self.assertEqual(sorted(files), ["index.html", "page.css", "page.js"])
        self.assertLess(sum(len(text.encode()) for text in files.values()), 155_000)

    def test_nothing_inline_and_nothing_from_elsewhere(self):
        files = self.files()
        page = files["index.html"]
        self.assertEqual(re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page), [])
        self.assertEqual(re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page), [])
        for name, text in files.items():
            addresses = re.findall(r"(?:src|href)=\"([^\"]*)\"|url\(([^)]*)\)|@import|https?://\w[^\s\"'`<>)]*", text)
            texts = re.findall(r"https?://\w[^\s\"'`<>)]*", text)
            # The names of namespaces and examples in placeholders are not fetched.
            self.assertEqual([one for one in texts if not re.match(r"http://www\.w3\.org/2000/svg|https://example\.com/", one)], [], name)
            self.assertEqual([one for pair in addresses for one in pair if one and not re.match(r"#|page\.(css|js)$|data:image/svg\+xml,", one)], [], name)

    def test_no_text_becomes_markup_or_code(self):
        self.assertEqual(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\"|createContextualFragment", self.files()["page.js"]), [])


@unittest.skipUnless(browser.find(), "no Chromium: install the package chromium, or name it in FK_CHROMIUM")
class PageCase(unittest.TestCase):
    count = 0
    secret = None

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.fake = Fake(self.count, self.secret)
        self.allowed = []
        self.page = None

    def tearDown(self):
        if self.page:
            problems = [text for text in self.page.problems() if not any(one in text for one in self.allowed)]
            self.page.close()
            self.assertEqual(problems, [])

    def open(self, width=1280, height=800, dark=False, until=LOADED):
        self.page = self.browser.page(self.fake.url, width, height, dark)
        if until:
            self.page.until(until)
        return self.page

    def says(self, text):
        return self.page.until(f"{text_of('#message')}.includes({text!r})", f"the message {text!r}")

    def row(self, task):
        """The text of a task's row."""
        return f"([...document.querySelectorAll('.task:not([hidden])')].find((row) => row.entry.row?.id === {task['id']!r})?.textContent ?? '')"

    def choose(self, page, task):
        """Makes a task the active one. The list may be sorted again meanwhile, so it is looked at until that is so."""
        page.until(f"(moveTo(store.places.get({task['id']!r})), list.activeId === {task['id']!r})")

    def focus_list(self):
        self.page.run("document.getElementById('grid').focus()")

    def named(self, state):
        return [task for task in self.fake.tasks.values() if task["state"] == state]


class LookTests(PageCase):
    """What is seen and read: contrast, names, order of focus, at three widths, light and dark."""
    count = 300

    def check(self, what):
        low = [one for one in self.page.run(look.CONTRAST) if one["ratio"] < one["needed"]]
        self.assertEqual(low, [], what)
        tree = self.page.tree()
        self.assertEqual(look.unnamed(tree), [], what)
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth - innerWidth"), 0, f"{what}: wider than the window")
        return tree

    def visit(self, width, height, dark):
        page = self.open(width, height, dark)
        what = f"{width} {'dark' if dark else 'light'}"
        tree = self.check(what)
        for role in ["banner", "navigation", "main", "tablist", "grid", "row", "gridcell", "tab", "searchbox", "heading"]:
            self.assertIn(role, {node["role"] for node in tree}, what)
        for state in ["error", "suspend", "complete", "idle", "cancel"]:
            page.click(f"#tab-{state}")
            page.until(f"document.querySelector('.task:not([hidden])')?.dataset.state === '{state}'")
            self.check(f"{what} {state}")
        page.click("#tab-all")
        page.until("document.querySelector('.task:not([hidden])')?.dataset.state === 'action'")
        self.focus_list()
        page.key("Home", "x", "Enter")
        page.until("!document.getElementById('details').hidden && document.querySelector('.ranges') !== null")
        self.check(f"{what} details")
        self.assertEqual(page.run("document.querySelector('.task.active').offsetWidth - document.getElementById('scroller').clientWidth"), 0, what)
        page.key("Escape", "Escape")
        for script, name in [("openAdd()", "add-dialog"), ("openLimit(null)", "limit-dialog"), ("openHelp()", "help-dialog"),
                             ("openSettings()", "settings-dialog"), ("openSync('isos', 'https://example.com/pub/')", "sync-dialog"), ("openPublish('isos')", "publish-dialog"),
                             ("openRelink(store.rows.get(0))", "relink-dialog"), ("void confirmed('Sure?', 'Text', 'Yes')", "ask-dialog")]:
            page.run(script)
            page.until(f"document.getElementById('{name}').open")
            if name == "add-dialog":
                page.run("document.getElementById('add-more').open = true")
            if name == "settings-dialog":
                page.click("#set-add-time")
            if name == "sync-dialog":
                page.until("document.querySelectorAll('#sync-job li').length === 2 && !document.getElementById('sync-delete-label').hidden")
            self.check(f"{what} {name}")
            if name == "add-dialog":
                page.click("#add-is-source")
                page.run("document.getElementById('add-source').value = 'https://example.com/pub/'")
                page.click("#add-preview")
                page.until("document.querySelectorAll('#add-job li').length === 40")
                self.check(f"{what} {name} source")
                page.run("document.getElementById('add-is-links').click()")
            page.key("Escape")
            page.until(f"!document.getElementById('{name}').open")

    def test_1280_light(self):
        self.visit(1280, 800, False)

    def test_1280_dark(self):
        self.visit(1280, 800, True)

    def test_768_light(self):
        self.visit(768, 1024, False)

    def test_768_dark(self):
        self.visit(768, 1024, True)

    def test_320_light(self):
        self.visit(320, 640, False)

    def test_390_light(self):
        self.visit(390, 844, False)

    def test_390_dark(self):
        self.visit(390, 844, True)

    def test_tab_reaches_every_control_with_a_visible_focus(self):
        page = self.open()
        seen = []
        # A look may have moved the place where Tab goes on. From the first control on, the order is always the same.
        page.key("Tab")
        page.run("document.querySelector('.skip').focus()")
        for _ in range(60):
            where, shows = page.run("(() => { const e = document.activeElement, s = getComputedStyle(e), a = document.querySelector('.task.active');"
                                    " return [e === document.body ? 'BODY' : e.id || e.textContent.trim().slice(0, 20) || e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2"
                                    " || (e.id === 'grid' && a !== null && getComputedStyle(a).boxShadow.includes('inset'))] })()")
            if where == "BODY" or where in seen:
                break
            seen.append(where)
            self.assertTrue(shows, f"{where} shows no focus")
            page.key("Tab")
        for control in ["open-limit", "open-add", "open-help", "tab-all", "filter", "select-all", "grid"]:
            self.assertIn(control, seen)
        self.assertLess(seen.index("open-add"), seen.index("filter"))
        self.assertLess(seen.index("filter"), seen.index("tab-all"))
        self.assertLess(seen.index("tab-all"), seen.index("grid"))

    def test_the_focus_of_the_grid_is_seen_without_a_chosen_task(self):
        page = self.open()
        page.key("/")
        page.type("no such name")
        page.until(f"{text_of('#empty')}.includes('No task matches')")
        page.run("document.getElementById('grid').focus()")
        shown = page.run("(() => { const s = getComputedStyle(document.getElementById('grid')); return [s.outlineStyle, s.outlineWidth, document.activeElement.id] })()")
        self.assertEqual(shown, ["solid", "2px", "grid"])

    def test_the_time_left_is_seen_at_every_width_and_the_peak_is_above_the_graph(self):
        for width, height in [(1440, 900), (1024, 768), (390, 844)]:
            page = self.open(width, height)
            page.until("[...document.querySelectorAll('.task[data-state=action]:not([hidden]) .left')].some((e) => e.textContent !== '' && e.checkVisibility() && e.getBoundingClientRect().right <= innerWidth)")
            page.until(f"{text_of('#graph-top')} !== ''")
            self.assertLessEqual(page.run("document.getElementById('graph-top').getBoundingClientRect().bottom - document.getElementById('graph-picture').getBoundingClientRect().top"), 1)
            page.close()
            self.page = None

    def test_live_regions_are_quiet_while_bytes_arrive(self):
        page = self.open()
        page.run("window.changes = 0; for (const e of document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]'))"
                 " new MutationObserver(() => { window.changes += 1 }).observe(e, { childList: true, characterData: true, subtree: true })")
        before = page.run(text_of("#rate"))
        page.until(f"{text_of('#rate')} !== {before!r}")
        time.sleep(3)
        self.assertEqual(page.run("window.changes"), 0)

    def test_reduced_motion(self):
        page = self.open()
        page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        moving = page.run("[...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== 'none').length")
        self.assertEqual(moving, 0)


class ListTests(PageCase):
    """10,000 tasks: rows, order, filter, keys."""
    count = 10_000

    def test_scrolls_through_ten_thousand_rows(self):
        page = self.open()
        self.assertEqual(page.run("document.getElementById('grid').getAttribute('aria-rowcount')"), "10001")
        frames = page.run(look.FRAMES)
        print(f"frames of 10,000 rows: median {frames['median']:.1f} ms, 95 % {frames['p95']:.1f} ms, worst {frames['worst']:.1f} ms; {frames['rows']} rows exist", file=sys.stderr)
        self.assertLess(frames["median"], 34)
        self.assertLess(frames["p95"], 150)
        self.assertLess(frames["rows"], 80)
        page.until(LOADED, "the last rows")
        self.assertEqual(page.run("Math.max(...[...document.querySelectorAll('.task:not([hidden])')].map((row) => row.entry.position))"), 9999)

    def test_a_list_that_is_taller_than_browsers_allow(self):
        page = self.open()
        # The limit is lowered, because a list of a million tasks would take the fake too long.
        page.run("list.greatest = 20000; render()")
        self.focus_list()
        for key, position in [("End", 9999), ("ArrowUp", 9998), ("PageUp", None), ("Home", 0), ("ArrowDown", 1)]:
            page.key(key)
            position = page.run("list.active") if position is None else position
            page.until(f"list.active === {position} && list.activeId !== null")
            page.until("(() => { const row = document.getElementById(`row-${list.active}`)?.getBoundingClientRect(), box = document.getElementById('scroller').getBoundingClientRect();"
                       " return row !== undefined && row.top >= box.top - 1 && row.bottom <= box.bottom + 1 })()", f"row {position} in view")

    def test_rows_are_in_the_order_of_the_document(self):
        page = self.open()
        page.run("document.getElementById('scroller').scrollTop = 4321")
        page.until(LOADED)
        page.until("(() => { const places = [...document.querySelectorAll('.task:not([hidden])')].map((row) => row.entry.position);"
                   " return places[0] > 100 && places.every((place, index) => index === 0 || place > places[index - 1]) })()")

    def test_keys_move_and_select(self):
        page = self.open()
        self.focus_list()
        page.key("End")
        page.until("document.getElementById('grid').getAttribute('aria-activedescendant') === 'row-9999' && list.activeId !== null")
        page.key("Home", "ArrowDown", "ArrowDown")
        self.assertEqual(page.run("document.getElementById('grid').getAttribute('aria-activedescendant')"), "row-2")
        page.key("ArrowDown", "ArrowDown", shift=True)
        page.until(f"{text_of('#selection-count')} === '3 selected'")
        self.assertEqual(page.run("document.querySelectorAll('.task[aria-selected=true]').length"), 3)
        page.key("a", control=True)
        page.until(f"{text_of('#selection-count')} === '10,000 selected'")
        page.key("Escape")
        page.until("document.getElementById('selection').hidden")

    def test_filters_and_sorts(self):
        page = self.open()
        page.key("/")
        page.type("SENTINEL2")
        page.until(f"{NAMES}.length > 3 && {NAMES}.every((name) => name.startsWith('sentinel2'))")
        page.key("Escape")
        page.until(f"{text_of('#list-sum')}.startsWith('10,000 tasks')")
        page.click("#heads [data-sort=size] button")
        page.until("document.querySelector('#heads [data-sort=size]').getAttribute('aria-sort') === 'descending'")
        page.until(LOADED)
        sizes = page.run("[...store.rows.entries()].sort((a, b) => a[0] - b[0]).slice(0, 50).map(([, row]) => row.expected)")
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        page.key("/")
        page.type("no such name")
        page.until(f"{text_of('#empty')}.includes('No task matches')")

    def test_the_active_row_follows_its_task(self):
        page = self.open()
        self.focus_list()
        page.key("Home", *["ArrowDown"] * 8)
        chosen = page.run("list.activeId")
        first = page.run("store.rows.get(0).id")
        self.fake.change(self.fake.tasks[first], state="suspend", bytesPerSecond=None)
        page.until(f"store.rows.get(0).id !== {first!r}")
        self.assertEqual(page.run("list.activeId"), chosen)
        self.assertEqual(page.run("store.rows.get(list.active).id"), chosen)

    def test_a_verb_for_all_matches_reaches_each_of_them(self):
        page = self.open()
        count = len(self.named("error"))
        page.click("#tab-error")
        page.until("document.querySelector('.task:not([hidden])')?.dataset.state === 'error'")
        self.focus_list()
        page.key("a", control=True)
        page.key("r")
        self.says(f"{count} tasks queued again")
        self.assertEqual(self.named("error"), [])


class ControlTests(PageCase):
    """What the page asks of the server."""
    count = 60

    def test_suspend_resume_and_cancel_by_keys(self):
        page = self.open()
        task = self.named("action")[0]
        self.focus_list()
        page.key("Home")
        self.assertEqual(page.run("list.activeId"), task["id"])
        page.key(" ")
        self.says("suspended")
        self.assertEqual(task["state"], "suspend")
        page.click("#tab-suspend")
        page.until(f"{self.row(task)}.includes('suspended')")
        self.focus_list()
        self.choose(page, task)
        page.key(" ")
        self.says("queued")
        self.assertNotEqual(task["state"], "suspend")
        page.click("#tab-all")
        page.until(self.row(task))
        self.choose(page, task)
        self.focus_list()
        page.key("c")
        page.until("document.getElementById('ask-dialog').open")
        self.assertEqual(page.run("document.activeElement.id"), "ask-no")
        page.key("Escape")
        page.until("!document.getElementById('ask-dialog').open")
        self.assertNotEqual(task["state"], "cancel")
        page.key("c")
        page.until("document.getElementById('ask-dialog').open")
        page.click("#ask-yes")
        self.says("cancelled")
        self.assertEqual(task["state"], "cancel")

    def test_details_with_ranges_history_and_verdicts(self):
        self.fake.change(next(task for task in self.named("action") if task["number"] == 3), name="evil\u001b[31m\u202e<img src=x onerror=alert(1)>")
        page = self.open()
        page.click(".task:not([hidden]) .name b")
        page.until("document.querySelectorAll('.ranges .have, .ranges .old').length === 4")
        text = page.run("document.getElementById('details').textContent")
        self.assertIn("evil\\e[31m\\u{202e}<img src=x onerror=alert(1)>", text)
        for part in ["4 connections", "mirror2.example.net", "attempt 1: The server answered 503.", "accepted: the address was signed", "sha-256="]:
            self.assertIn(part, text)
        self.assertEqual(page.run("document.querySelectorAll('img').length"), 0)
        self.assertTrue(any(node["role"] in ("image", "img") and node["name"].startswith("4 connections:") for node in page.tree()))

    def test_adds_links(self):
        page = self.open()
        page.key("a")
        page.until("document.getElementById('add-dialog').open")
        page.type("https://example.com/one.bin\nhttps://example.com/two.bin\nftp://example.com/three.bin")
        page.run("document.getElementById('add-barrel').value = 'new'")
        page.click("#add-send")
        page.until(f"{text_of('#add-problem')}.includes('neither http nor https')")
        self.assertEqual(page.run("document.getElementById('add-text').value"), "ftp://example.com/three.bin")
        self.says("2 added, 1 refused")
        page.key("Escape")
        page.until(f"{text_of('#barrel-list')}.includes('new')")

    def test_adds_a_dropped_list(self):
        page = self.open()
        page.run("(() => { const data = new DataTransfer(); data.items.add(new File(['https://example.com/a.bin\\n  out=b.bin\\nnonsense\\n'], 'list.txt'));"
                 " for (const kind of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true })) })()")
        page.until(f"document.getElementById('add-dialog').open && {text_of('#add-what')}.includes('list.txt')")
        page.click("#add-send")
        page.until(f"{text_of('#add-problem')}.includes('Line 3: nonsense is no URL')")
        self.assertIn(("fk.import"), [method for method, _ in self.fake.calls])

    def test_pasted_links_open_the_dialog(self):
        page = self.open()
        page.run("(() => { const data = new DataTransfer(); data.setData('text/plain', 'https://example.com/pasted.bin');"
                 " document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })) })()")
        page.until("document.getElementById('add-dialog').open && document.getElementById('add-text').value === 'https://example.com/pasted.bin'")

    def test_control_enter_adds_with_login_and_certificates(self):
        page = self.open()
        page.key("a")
        page.until("document.getElementById('add-dialog').open")
        page.type("https://example.com/private.bin")
        page.run("document.getElementById('add-more').open = true; document.getElementById('add-user').value = 'me'; document.getElementById('add-password').value = 'gehé'; document.getElementById('add-ca').value = '/etc/own.pem'")
        page.key("Enter", control=True)
        page.until("!document.getElementById('add-dialog').open")
        given = [given for method, given in self.fake.calls if method == "fk.add"][0]
        self.assertEqual(given["headers"], ["Authorization: Basic bWU6Z2Vow6k="])
        self.assertEqual(given["caFile"], "/etc/own.pem")

    def test_all_failed_are_retried_and_all_complete_are_cleared(self):
        page = self.open()
        self.assertTrue(page.run("document.getElementById('state-buttons').hidden"))
        for state, said in [("error", "queued again"), ("complete", "forgotten")]:
            while len(self.named(state)) < 2:
                self.fake.change(self.named("idle")[0], state=state, waiting=None)
            count = len(self.named(state))
            page.click(f"#tab-{state}")
            page.until(f"document.querySelector('.task:not([hidden])')?.dataset.state === '{state}'")
            page.click("#state-buttons button")
            self.says(f"{count} tasks {said}")
            self.assertEqual(self.named(state), [])

    def test_a_waiting_task_moves_in_the_queue(self):
        page = self.open()
        page.click("#tab-idle")
        page.until("document.querySelector('.task:not([hidden])')?.dataset.state === 'idle'")
        first, second, third = page.run("[0, 1, 2].map((place) => store.rows.get(place).id)")
        self.choose(page, {"id": first})
        self.focus_list()
        page.key("J")
        page.until(f"store.rows.get(1)?.id === {first!r} && store.rows.get(0)?.id === {second!r}")
        self.assertEqual(page.run("list.activeId"), first)
        self.choose(page, {"id": third})
        page.key("Enter")
        page.click("[data-act=first]")
        page.until(f"store.rows.get(0)?.id === {third!r}")

    def test_the_filter_within_a_state_tells_of_matches_in_others(self):
        task = self.named("complete")[0]
        page = self.open()
        page.click("#tab-error")
        page.until("document.querySelector('.task:not([hidden])')?.dataset.state === 'error'")
        self.fake.change(task, name="unique-name.bin")
        page.key("/")
        page.type("unique-name")
        page.until(f"{text_of('#empty')}.includes('No failed task matches') && {text_of('#empty')}.includes('1 task in other states')")
        page.click("#empty p button")
        page.until(f"{NAMES}.includes('unique-name.bin')")

    def test_settings_are_shown_and_only_what_changed_is_sent(self):
        page = self.open()
        page.key(",")
        page.until("document.getElementById('settings-dialog').open && document.getElementById('set-jobs').value === '3'")
        page.run("document.getElementById('set-jobs').value = '7'; document.getElementById('set-connections').value = '4'")
        page.click("#set-add-time")
        self.assertEqual(page.run(text_of("#set-rate-label")), "Limit at other times")
        page.run("(() => { const [from, to, rate] = document.querySelectorAll('#set-times input'); from.value = '22:00'; to.value = '06:00'; rate.value = 'fast' })()")
        page.click("#settings-send")
        page.until(f"{text_of('#settings-problem')}.includes('from 22:00 to 06:00 is no rate')")
        page.run("document.querySelectorAll('#set-times input')[2].value = '500K'")
        page.click("#settings-send")
        self.says("The settings are changed.")
        given = [given for method, given in self.fake.calls if method == "fk.settings" and given]
        self.assertEqual(given, [{"jobs": 7, "connections": 4, "daily": [{"time": "22:00-06:00", "rate": 512000}]}])
        page.click("#open-settings")
        page.until("document.getElementById('settings-dialog').open && document.querySelectorAll('#set-times li').length === 1")
        page.run("document.getElementById('set-connections').value = ''; document.getElementById('set-folder').value = '/etc'")
        page.click("[aria-label='Remove this time']")
        page.click("#settings-send")
        page.until(f"{text_of('#settings-problem')}.includes('The folder /etc is not allowed')")
        page.run("document.getElementById('set-folder').value = '/home/a/Downloads/x'")
        page.click("#settings-send")
        page.until("!document.getElementById('settings-dialog').open")
        self.assertEqual([self.fake.set[key] for key in ["connections", "folder", "daily"]], [None, "/home/a/Downloads/x", []])

    def test_all_tasks_at_once_say_first_what_they_touch(self):
        page = self.open()
        counts = {state: len(self.named(state)) for state in ["action", "idle"]}
        count = sum(counts.values())
        page.click("#all-buttons [data-verb=suspend]")
        page.until("document.getElementById('ask-dialog').open")
        text = page.run(text_of("#ask-text"))
        self.assertRegex(text, rf"{counts['action']} running and {counts['idle']} waiting tasks.* stop and keep their bytes")
        self.assertEqual(page.run(text_of("#ask-yes")), f"Suspend {count} tasks")
        page.key("Escape")
        page.until("!document.getElementById('ask-dialog').open")
        self.assertEqual(len(self.named("action")), counts["action"])
        page.click("#all-buttons [data-verb=suspend]")
        page.click("#ask-yes")
        self.says(f"{count} tasks suspended.")
        self.assertEqual(self.named("action") + self.named("idle"), [])
        suspended = len(self.named("suspend"))
        page.until("!document.querySelector('#all-buttons [data-verb=resume]').disabled && document.querySelector('#all-buttons [data-verb=suspend]').disabled")
        page.click("#all-buttons [data-verb=resume]")
        page.until(f"{text_of('#ask-yes')} === 'Resume {suspended} tasks'")
        page.click("#ask-yes")
        self.says(f"{suspended} tasks resumed.")
        page.click("#barrel-list button", 1)
        page.until("document.getElementById('all-buttons').hidden")

    def test_a_source_is_shown_and_fetched(self):
        page = self.open()
        page.key("a")
        page.until("document.getElementById('add-dialog').open")
        page.type("s3://bucket/broken")
        page.until("document.getElementById('add-is-source').checked && document.getElementById('add-source').value === 's3://bucket/broken'")
        page.click("#add-preview")
        page.until(f"{text_of('#add-problem')} === 'The server answered 404: it has no such folder.'")
        page.run("document.getElementById('add-source').value = 'https://example.com/linux/'; document.getElementById('add-include').value = '*.iso, *.img'")
        page.click("#add-preview")
        page.until(f"{text_of('#add-job p')} === '30 new (150 MiB), 10 unchanged (50.0 MiB)'")
        self.assertEqual(page.run(text_of("#add-problem")), "")
        page.click("#add-send")
        self.says("The files of https://example.com/linux/ are added.")
        page.until(f"{text_of('#barrel-list')}.includes('linux')")
        self.assertEqual([given for method, given in self.fake.calls if method == "fk.fetch"], [{"source": "https://example.com/linux/", "include": ["*.iso", "*.img"]}])
        self.assertFalse(page.run("document.getElementById('add-dialog').open"))

    def test_a_preview_that_is_closed_is_ended(self):
        page = self.open()
        page.run("openAdd(); document.getElementById('add-is-source').click(); document.getElementById('add-source').value = 'https://example.com/linux/'")
        page.click("#add-preview")
        page.until(f"{text_of('#add-job')}.includes('The source is read')")
        page.key("Escape")
        page.until("!document.getElementById('add-dialog').open")
        page.until("document.getElementById('add-job').job === null")
        limit = time.monotonic() + 10
        while not any(method == "fk.endJob" for method, _ in self.fake.calls):
            self.assertLess(time.monotonic(), limit)
            time.sleep(.05)

    def test_a_barrel_with_a_source_is_synchronized_and_deletes_what_was_shown(self):
        self.fake.origins["isos"] = "https://example.com/pub/"
        page = self.open()
        page.run("chooseBarrel('isos')")
        page.click("#barrel-buttons [data-act=sync]")
        page.until(f"{text_of('#sync-job p')}.includes('1 new (7.0 MiB), 1 gone (3.0 MiB)')")
        page.click("#sync-delete")
        page.until(f"{text_of('#sync-send')} === 'Synchronize and delete 1 file'")
        page.click("#sync-send")
        self.says("isos is in step: 1 new (7.0 MiB), 1 deleted (3.0 MiB).")
        page.click("#barrel-buttons [data-act=sync]")
        page.until("!document.getElementById('sync-send').disabled")
        page.click("#sync-send")
        self.says("isos is not in step. new.iso: The server answered 503.")
        self.assertEqual([given for method, given in self.fake.calls if method == "fk.sync"],
                         [{"barrel": "isos", "dryRun": True}, {"barrel": "isos", "delete": True, "maxDelete": "1"}, {"barrel": "isos", "dryRun": True}, {"barrel": "isos"}])

    def test_a_barrel_is_published(self):
        page = self.open()
        page.run("chooseBarrel('isos')")
        self.assertEqual(page.run("document.querySelectorAll('#barrel-buttons [data-act=sync]').length"), 0)
        page.click("#barrel-buttons [data-act=publish]")
        page.until(f"{text_of('#publish-problem')}.includes('All files have to be complete first')")
        page.type("whole")
        page.click("#publish-send")
        page.until(f"{text_of('#publish-problem')}.includes('so it was not published')")
        for task in list(self.fake.tasks.values()):
            if "isos" in task["barrels"]:
                self.fake.change(task, state="complete")
        page.click("#publish-send")
        self.says("/home/a/Downloads/whole: version sha256:5a5a")

    def test_limits_of_all_and_of_a_barrel(self):
        page = self.open()
        page.click("#open-limit")
        page.until("document.getElementById('limit-dialog').open && document.activeElement.id === 'limit-rate'")
        page.type("fast")
        page.key("Enter")
        page.until(f"{text_of('#limit-problem')}.includes('not a rate')")
        page.run("document.getElementById('limit-rate').select()")
        page.type("2M")
        page.key("Enter")
        page.until(f"{text_of('#limit-text')} === '2.0 MiB/s'")
        self.assertEqual(self.fake.limits[None], 2 << 20)
        self.focus_list()
        page.key("+")
        page.until(f"{text_of('#limit-text')} === '4.0 MiB/s'")
        page.key("-", "-")
        page.until(f"{text_of('#limit-text')} === '1.0 MiB/s'")
        page.click("#barrel-list button", 1)
        page.until("!document.getElementById('barrel-buttons').hidden")
        page.key("l")
        page.until("document.getElementById('limit-dialog').open && document.activeElement.id === 'limit-rate'")
        page.type("500K")
        page.key("Enter")
        page.until(f"{text_of('#barrel-limit')} === 'Limit 500 KiB/s'")
        self.assertEqual(self.fake.limits["DeepSeek-V3"], 500 << 10)

    def test_relinks_and_forgets(self):
        page = self.open()
        task = self.named("error")[0]
        page.click("#tab-error")
        page.until(self.row(task))
        self.choose(page, task)
        self.focus_list()
        page.key("n")
        page.until("document.getElementById('relink-dialog').open")
        page.type("https://example.com/new")
        page.key("Enter")
        self.says("has the new address")
        self.assertEqual(task["link"], "https://example.com/new")
        done = self.named("complete")[0]
        page.click("#tab-complete")
        page.until(self.row(done))
        self.choose(page, done)
        self.focus_list()
        page.key("f")
        self.says("forgotten")
        self.assertNotIn(done["id"], self.fake.tasks)

    def test_the_documents_have_every_key(self):
        page = self.open()
        names = page.run("KEYS.flatMap(([keys]) => keys.map((key) => KEY_NAMES[key] ?? key))")
        table = (PAGE.parent.parent.parent / "Docs/RPC.md").read_text().split("### Keys")[1].split("\n## ")[0]
        described = [key for line in table.split("\n") if line.startswith("| `") for key in re.findall(r"`([^`]+)`", line.split("|")[1])]
        self.assertEqual(sorted(names), sorted(described))

    def test_single_keys_can_be_switched_off(self):
        page = self.open()
        page.key("?")
        page.until("document.getElementById('help-dialog').open")
        page.click("#keys-on")
        page.key("Escape", "a")
        time.sleep(.2)
        self.assertFalse(page.run("document.getElementById('add-dialog').open"))
        self.focus_list()
        page.key("Home")
        self.assertEqual(page.run("list.active"), 0)


class StateTests(PageCase):
    """What the page says when something is not as usual."""
    count = 60

    def banner(self, text):
        return self.page.until(f"{text_of('#banners')}.includes({text!r})", f"the warning {text!r}")

    def test_a_lost_connection_and_its_return(self):
        page = self.open()
        self.allowed = ["WebSocket"]
        self.fake.cut()
        self.banner("The connection to fk rpc is lost")
        page.until(f"{text_of('#engine')} === 'Not connected'")
        page.click("#barrel-list button", 1)
        self.focus_list()
        page.key("a", control=True)
        page.key("r")
        self.says("nothing was changed")
        # The alert is written once, not at each attempt.
        page.run("window.changes = 0; new MutationObserver(() => { window.changes += 1 }).observe(document.getElementById('banners'), { childList: true, characterData: true, subtree: true })")
        time.sleep(2.5)
        self.assertEqual(page.run("window.changes"), 0)
        self.fake.listen_again()
        page.click("#banners button")
        page.until(f"{text_of('#banners')} === ''")
        self.says("Connected again")

    def test_a_server_that_does_not_answer(self):
        self.open()
        self.fake.is_mute = True
        self.banner("has not answered for some seconds")
        self.fake.is_mute = False

    def test_another_process_owns_the_engine(self):
        page = self.open()
        self.fake.mode.update(owner="process", ownerPid=4711)
        self.banner("Process 4711 runs the downloads of this work path")
        page.until(f"{text_of('#engine')} === 'Process 4711 runs the downloads'")
        self.fake.mode.update(silentSeconds=9)
        self.banner("has shown no sign of life for 9s")
        self.assertNotIn("follows and steers", page.run(text_of("#banners")))
        page.until("document.getElementById('engine').dataset.is === 'silent'")
        self.assertEqual(page.run("[document.getElementById('engine').textContent, getComputedStyle(document.getElementById('engine'), '::before').backgroundColor]"),
                         ["Process 4711 does not answer", "rgb(179, 33, 26)"])
        self.fake.mode.update(owner="nobody", ownerPid=None, silentSeconds=None)
        self.banner("No process runs the downloads. Start them in a terminal with: fk run")

    def test_a_full_disk(self):
        self.open()
        for task in self.named("idle")[:3]:
            self.fake.change(task, waiting=self.fake.waiting("no space", 60))
        self.fake.mode.update(free=1 << 20)
        self.banner("The disk is full: 3 tasks wait for space. 1.0 MiB are free.")
        self.fake.change(self.named("complete")[0], state="error", error=self.fake.error("no-space", "There is no space on the disk."))
        self.banner("Not enough space on the disk: 1 task failed. 1.0 MiB are free. Make room, then retry.")


class EmptyTests(PageCase):
    def test_an_empty_work_path_shows_how_to_add(self):
        for width, height in WIDTHS:
            page = self.open(width, height, until=f"{text_of('#empty')}.includes('Nothing here yet')")
            self.assertIn("fk get URL", page.run(text_of("#empty")))
            if width != WIDTHS[-1][0]:
                page.close()
        page.click("#empty button")
        page.until("document.getElementById('add-dialog').open")
        page.type("https://example.com/first.bin")
        page.key("Tab")
        page.run("document.getElementById('add-form').requestSubmit()")
        page.until(f"{NAMES}.includes('first.bin')")


    def test_a_task_between_the_list_and_the_subscription_is_not_missed(self):
        def on_call(method):
            if method == "fk.tasks" and not self.fake.tasks:
                self.fake.make(1, "https://example.com/between.bin", "between.bin", state="suspend")
        self.fake.on_call = on_call
        page = self.open(until=None)
        page.until(f"{NAMES}.includes('between.bin')", seconds=6)


class SecretTests(PageCase):
    secret = "right secret"
    count = 10

    def enter(self, secret):
        self.page.until("document.getElementById('secret-dialog').open && document.activeElement.id === 'secret'")
        self.page.run("document.getElementById('secret').value = ''")
        self.page.type(secret)
        self.page.key("Enter")

    def test_asks_for_the_secret_and_keeps_it_until_the_tab_is_closed_only_if_asked_to(self):
        page = self.open(until=None)
        self.enter("wrong")
        page.until(f"{text_of('#secret-problem')}.includes('refused this secret')")
        self.assertEqual(self.fake.refusals, 1)
        self.assertFalse(page.run("document.getElementById('secret-keep').checked"))
        self.enter("right secret")
        page.until(LOADED)
        self.assertFalse(page.run("document.getElementById('secret-dialog').open"))
        self.assertEqual(page.run("[sessionStorage.length, localStorage.length, document.cookie, location.search]"), [0, 0, "", ""])
        page.go(self.fake.url + "?again")
        page.until("document.getElementById('secret-dialog').open")
        page.click("#secret-keep")
        page.run("document.getElementById('secret').focus()")
        self.enter("right secret")
        page.until(LOADED)
        page.go(self.fake.url)
        page.until(LOADED)
        self.assertFalse(page.run("document.getElementById('secret-dialog').open"))


if __name__ == "__main__":
    unittest.main()
