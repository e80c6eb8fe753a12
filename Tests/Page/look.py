"""What the tests measure in the page: contrast, names of controls, frame times."""

# Every text and every border of a control in view with its contrast, computed from the colours that the browser uses.
CONTRAST = r"""
(() => {
  const parse = (text) => {
    const numbers = text.match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) ?? [];
    if (text.startsWith("color(srgb")) return [numbers[0] * 255, numbers[1] * 255, numbers[2] * 255, numbers[3] ?? 1];
    return [numbers[0], numbers[1], numbers[2], numbers[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((index) => top[index] * top[3] + below[index] * (1 - top[3])).concat(1);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((value) => { const part = value / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => { const [high, low] = [light(one), light(other)].sort((a, b) => b - a); return (high + 0.05) / (low + 0.05); };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0 && !element.closest(".hidden, .symbols");
  const root = document.querySelector("dialog[open]") ?? document.body;
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !isShown(element) || element.closest("noscript, :disabled, datalist")) continue;
    const behind = ground(element);
    found.push({ what: node.data.trim().slice(0, 40), kind: "text", ratio: ratio(over(parse(getComputedStyle(element).color), behind), behind), needed: 4.5 });
  }
  for (const element of root.querySelectorAll("input:not([type=checkbox]):enabled, select, textarea:enabled, .box")) {
    if (!isShown(element)) continue;
    const behind = ground(element.parentElement);
    found.push({ what: element.id || element.className, kind: "border", ratio: ratio(over(parse(getComputedStyle(element).borderTopColor), behind), behind), needed: 3 });
  }
  for (const element of root.querySelectorAll(".icon")) {
    if (!isShown(element)) continue;
    const behind = ground(element);
    found.push({ what: element.firstElementChild.getAttribute("href"), kind: "icon", ratio: ratio(over(parse(getComputedStyle(element).color), behind), behind), needed: 3 });
  }
  return found;
})()
"""

# Scrolls through the whole list in 300 frames and returns the time of each frame in milliseconds.
FRAMES = r"""
(async () => {
  const scroller = document.getElementById("scroller");
  const frames = [];
  let blank = 0;
  let last = await new Promise(requestAnimationFrame);
  for (let step = 1; step <= 300; step += 1) {
    scroller.scrollTop = (scroller.scrollHeight - scroller.clientHeight) * step / 300;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  frames.sort((a, b) => a - b);
  return { median: frames[150], p95: frames[285], worst: frames[299], rows: document.querySelectorAll(".task").length };
})()
"""

CONTROLS = {"button", "link", "textbox", "searchbox", "checkbox", "combobox", "tab", "grid", "row", "columnheader", "dialog", "alertdialog", "image", "img",
            "navigation", "complementary", "toolbar", "tablist", "tabpanel", "region", "radio", "slider", "group"}


def unnamed(tree):
    """Controls and landmarks of an accessibility tree that have no name."""
    return [node for node in tree if node["role"] in CONTROLS and not node["name"].strip() and not (node["role"] in ("group", "row", "rowgroup", "generic"))]
