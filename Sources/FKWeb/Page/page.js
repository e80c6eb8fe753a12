"use strict";
// The page of fk rpc: a client of the fk.* methods (Docs/RPC.md) over one WebSocket.
//
//   Connection   calls and notifications, reconnects
//   store        what the server said last: status, barrels, the loaded window of the list
//   list         virtual rows: only those in view exist, whatever the length of the list
//   details, barrels, graph, dialogs, keys
//   jobs         commands of fk that the server starts for the page: sources, synchronizations, published folders
//
// Every text from outside is put with textContent, with its control characters escaped (visible).

// ---- Elements ----

const $ = (id) => document.getElementById(id);

/** An element with properties and children; texts become text nodes. */
function h(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "data") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const icon = (name) => svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `#i-${name}` }));

/** Sets the text only if it differs: an unchanged node costs no layout. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The whole of a text that may be cut off. */
function setTitle(element, text) {
  if (element.title !== text) element.title = text;
}

function setBar(bar, fraction) {
  bar.firstChild.style.transform = `scaleX(${Math.max(0, Math.min(1, fraction || 0)).toFixed(4)})`;
  bar.classList.toggle("full", fraction >= 1);
}

const newBar = () => h("span", { class: "bar", "aria-hidden": "true" }, h("i"));

/** A button that keeps its place in the order of focus. */
const button = (text, act, properties, symbol) =>
  h("button", { type: "button", onclick: act, ...properties }, symbol ? icon(symbol) : null, text);

// ---- Texts, as fk writes them ----

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\u001b": "\\e" };

/** The text with every character escaped that could hide or reorder text. */
const visible = (text) =>
  String(text ?? "").replace(HIDDEN, (sign) => SHORT[sign] ?? `\\u{${sign.codePointAt(0).toString(16)}}`);

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function unitFor(count) {
  let unit = 0;
  for (let value = count; value >= 999.5 && unit < UNITS.length - 1; value /= 1024) unit += 1;
  return unit;
}

function inUnit(count, unit) {
  if (unit === 0) return String(Math.floor(count));
  const value = count / 1024 ** unit;
  return value < 99.95 ? (Math.round(value * 10) / 10).toFixed(1) : String(Math.round(value));
}

function bytes(count) {
  const unit = unitFor(count);
  return `${inUnit(count, unit)} ${UNITS[unit]}`;
}

/** `1.2/2.9 GiB`; with `isKnown` false the length is a lower bound: `1.2/≥2.9 GiB`. */
function amount(received, expected, isKnown = true) {
  if (expected === null || expected === undefined || (!isKnown && expected <= received)) return bytes(received);
  const unit = unitFor(Math.max(expected, received));
  return `${inUnit(received, unit)}/${isKnown ? "" : "≥"}${inUnit(expected, unit)} ${UNITS[unit]}`;
}

const rateText = (rate) => `${bytes(Math.max(0, Math.min(rate || 0, 2 ** 60)))}/s`;
const two = (value) => String(value).padStart(2, "0");

function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "-";
  const whole = Math.ceil(Math.min(seconds, 1e9));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h${two(Math.floor(whole / 60) % 60)}m`;
  if (whole < 100 * 86400) return `${Math.floor(whole / 86400)}d${two(Math.floor(whole / 3600) % 24)}h`;
  return "99d+";
}

/** A remaining time, in steps that do not change all the time. */
function remaining(seconds) {
  if (!Number.isFinite(seconds) || seconds < 60) return duration(seconds);
  if (seconds <= 595) return duration(Math.ceil(seconds / 5) * 5);
  if (seconds >= 3570) return duration(Math.max(seconds, 3600));
  return `${Math.round(seconds / 60)}m`;
}

function percent(received, expected) {
  if (expected === null || expected === undefined) return "";
  if (expected <= 0) return "100%";
  return `${Math.max(0, Math.min(100, Math.floor((received / expected) * 100 + 1e-9)))}%`;
}

const number = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Local time: `14:03:12` today, else `2026-11-20 14:03`. */
function clockText(time, isWhole) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return visible(time);
  const hours = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (!isWhole && date.toDateString() === new Date().toDateString()) return `${hours}:${two(date.getSeconds())}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${hours}${isWhole ? `:${two(date.getSeconds())}` : ""}`;
}

/** Bytes a second of `2M`, `500K`, `1.5 MiB/s`; null for no limit, undefined if it is no rate. */
function parseRate(text) {
  const words = text.trim().toLowerCase();
  if (words === "" || words === "none" || words === "0") return null;
  const match = /^(\d+(?:[.,]\d+)?)\s*([kmgt]?)(?:i?b)?(?:\/s)?$/.exec(words);
  if (!match) return undefined;
  const rate = Math.round(Number(match[1].replace(",", ".")) * 1024 ** " kmgt".indexOf(match[2] || " "));
  return rate >= 1 ? rate : undefined;
}

const STATES = ["action", "idle", "error", "suspend", "cancel", "complete"];
const WORDS = { action: "running", idle: "waiting", error: "failed", suspend: "suspended", cancel: "cancelled", complete: "complete", unknown: "unknown" };
const stateOf = (task) => (WORDS[task.state] ? task.state : "idle");

/** Why a task waits, in short words: `example.com asked for 1m54s`. */
function waitText(task) {
  const waiting = task.waiting;
  if (!waiting) return "waiting";
  const left = waiting.until ? duration(Math.max(0, (Date.parse(waiting.until) - Date.now()) / 1000)) : null;
  const host = visible(waiting.host);
  const attempt = left && task.attempts > 0 ? `, ${task.attempts} failed so far` : "";
  const because = left && task.error ? `: ${visible(task.error.message)}` : "";
  switch (waiting.reason) {
    case "slot":
      if (!waiting.limit) return "about to start";
      return waiting.limit === 1 ? "the only slot is taken" : `all ${waiting.limit} slots are taken`;
    case "host":
    case "retry":
      if (left) return `${waiting.host ? `${host} asked for ${left}` : `next attempt in ${left}`}${attempt}${because}`;
      if (!waiting.host) return "next attempt is due";
      return waiting.limit ? `${host} has ${waiting.limit} of ${waiting.limit} connections` : `${host} has no free connection`;
    case "no space": return `no space on the disk${left ? `, next attempt in ${left}` : ""}`;
    case "engine": return "no process runs the downloads";
    case "queue": return "not started";
    default: return visible(waiting.reason);
  }
}

/** What the list says about a task that does not run. */
function stateText(task) {
  switch (stateOf(task)) {
    case "error": return visible(task.error?.message ?? "failed");
    case "idle": return waitText(task);
    case "suspend": return task.received > 0 ? `suspended, ${bytes(task.received)} kept` : "suspended";
    case "cancel": return "cancelled";
    case "complete": return task.finished ? `complete, ${clockText(task.finished)}` : "complete";
    default: return WORDS[task.state] ?? "";
  }
}

const leftOf = (task) =>
  task.state === "action" && task.expected !== null && task.bytesPerSecond > 0
    ? remaining((task.expected - task.received) / task.bytesPerSecond) : "";

const nameOf = (task) => visible(task.name || task.url);

function hostOf(url) {
  const match = /^[a-z]+:\/\/(?:[^/@]*@)?([^/?#]*)/i.exec(url ?? "");
  return match ? visible(match[1]) : "";
}

// ---- Connection ----

class Refused extends Error {}

/** One WebSocket with calls and notifications. It connects again after 1, 2, 4, 8, 15 s. */
class Connection {
  secret = null;
  constructor(events) {
    this.events = events;
    this.pending = new Map();
    this.lastId = 0;
    this.failures = 0;
    this.heard = 0;
  }

  open() {
    clearTimeout(this.timer);
    this.socket?.close();
    const address = new URL("jsonrpc", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.search = address.hash = "";
    const socket = (this.socket = new WebSocket(address));
    socket.onopen = () => { this.heard = performance.now(); this.events.opened(); };
    socket.onmessage = (event) => { this.heard = performance.now(); this.received(event.data); };
    socket.onclose = () => { if (socket === this.socket) this.closed(); };
  }

  get isOpen() { return this.socket?.readyState === WebSocket.OPEN; }

  /** Seconds for which a call has waited without any sign of the server. */
  get silence() { return this.isOpen && this.pending.size > 0 ? (performance.now() - Math.max(this.heard, this.asked ?? 0)) / 1000 : 0; }

  closed() {
    for (const call of this.pending.values()) call.reject(new Error("The connection was lost."));
    this.pending.clear();
    const delay = [1, 2, 4, 8, 15][Math.min(this.failures, 4)];
    this.failures += 1;
    this.timer = setTimeout(() => this.open(), delay * 1000);
    this.events.lost();
  }

  call(method, ...given) {
    if (!this.isOpen) return Promise.reject(new Error("There is no connection to the server."));
    const id = ++this.lastId;
    const params = this.secret === null ? [] : [`token:${this.secret}`];
    params.push(...given.filter((one) => one !== undefined && one !== null));
    if (this.pending.size === 0) this.asked = performance.now();
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  received(text) {
    let message;
    try { message = JSON.parse(text); } catch { return; }
    if (message.method === "fk.onChange") return this.events.changed(message.params?.[0] ?? {});
    const call = this.pending.get(message.id);
    if (!call) return;
    this.pending.delete(message.id);
    if (!message.error) return call.resolve(message.result);
    const words = visible(message.error.message || "The server gave no reason.");
    call.reject(words === "Unauthorized" ? new Refused(words) : new Error(words));
  }
}

// ---- What the server said last ----

const PAGE = 100;
const store = {
  status: null,
  barrels: [],
  /** The list: its query, its length and the rows that are loaded, by their position. */
  query: { barrel: null, states: null, text: "", sort: "queue", ascending: true },
  generation: 0,
  total: 0,
  page: null,
  rows: new Map(),
  /** Positions of rows by their id. */
  places: new Map(),
  fresh: new Set(),
  /** The selected tasks: id to row; or every task of the list. */
  selected: new Map(),
  isAllSelected: false,
  detailsId: null,
  details: null,
  isLive: false,
};

function queryObject() {
  const { barrel, states, text, sort, ascending } = store.query;
  const object = { sort, ascending };
  if (barrel !== null) object.barrel = barrel;
  if (states) object.states = states;
  if (text) object.text = text;
  return object;
}

function setRow(position, row) {
  const before = store.rows.get(position);
  if (before && before.id !== row.id && store.places.get(before.id) === position) store.places.delete(before.id);
  store.rows.set(position, row);
  store.places.set(row.id, position);
  if (store.selected.has(row.id)) store.selected.set(row.id, row);
}

function dropRow(position) {
  const row = store.rows.get(position);
  if (!row) return;
  store.rows.delete(position);
  if (store.places.get(row.id) === position) store.places.delete(row.id);
}

// ---- The list ----

const list = {
  first: 0, last: -1, height: 36, active: -1, activeId: null, anchor: -1, pool: [], loading: false, due: false, isAsked: false,
  /** Browsers limit the height of an element; beyond it the scroll bar is a scale. */
  greatest: 8e6,
};

const HEADS = [
  ["name", "Name", "name"], ["state", "State", "what"], ["size", "Size", "amount end"], ["bytesPerSecond", "Rate", "speed end"], [null, "Left", "left end"],
];
const SORTS = [
  ["queue", "Queue"], ["number", "Added"], ["name", "Name"], ["host", "Host"], ["size", "Size"], ["received", "Received"], ["percentage", "Percent"],
  ["bytesPerSecond", "Rate"], ["state", "State"], ["created", "Created"], ["finished", "Finished"],
];

function newRow() {
  const box = h("span", { class: "box" }, icon("complete"));
  const parts = {
    pick: h("span", { class: "pick", role: "gridcell" }, h("span", { class: "hidden" }), box),
    state: h("span", { class: "state", role: "gridcell" }, icon("idle"), h("span", { class: "hidden" })),
    name: h("span", { class: "name", role: "gridcell" }, h("b"), h("span")),
    what: h("span", { class: "what", role: "gridcell" }, newBar(), h("span", { class: "percent" }), h("span", { class: "text" })),
    amount: h("span", { class: "amount", role: "gridcell" }),
    speed: h("span", { class: "speed", role: "gridcell" }),
    left: h("span", { class: "left", role: "gridcell" }),
  };
  const element = h("div", { class: "row task", role: "row" }, ...Object.values(parts));
  const entry = { element, parts, position: -1, row: undefined, key: "" };
  element.entry = entry;
  return entry;
}

/** The position in the list of the first pixel in view, with its fraction. */
function topPosition() {
  const { scrollTop, clientHeight } = $("scroller");
  const whole = store.total * list.height;
  if (whole <= list.greatest) return scrollTop / list.height;
  if (list.exact?.scrollTop === scrollTop) return list.exact.top;
  const room = list.greatest - clientHeight;
  return room <= 0 ? 0 : (scrollTop / room) * Math.max(0, store.total - clientHeight / list.height);
}

function render() {
  list.isAsked = false;
  const scroller = $("scroller");
  const spacer = $("spacer");
  const whole = Math.min(store.total * list.height, list.greatest);
  if (list.whole !== whole) spacer.style.height = `${(list.whole = whole)}px`;
  const top = topPosition();
  const rowsInView = Math.ceil(scroller.clientHeight / list.height);
  const first = Math.max(0, Math.floor(top) - 6);
  const last = Math.min(store.total - 1, Math.floor(top) + rowsInView + 6);
  const count = Math.max(0, rowsInView + 14);
  while (list.pool.length < count) {
    const entry = newRow();
    list.pool.push(entry);
    spacer.append(entry.element);
  }
  list.first = first;
  list.last = last;
  const isScaled = store.total * list.height > list.greatest;
  const base = isScaled ? scroller.scrollTop - top * list.height : 0;
  const used = new Set();
  for (let position = first; position <= last; position += 1) {
    const entry = list.pool[position % list.pool.length];
    used.add(entry);
    const isMoved = entry.position !== position;
    if (isMoved || isScaled || entry.height !== list.height) entry.element.style.transform = `translateY(${base + position * list.height}px)`;
    entry.height = list.height;
    fillRow(entry, position, isMoved);
  }
  for (const entry of list.pool) {
    const isUsed = used.has(entry);
    if (entry.element.hidden === isUsed) entry.element.hidden = !isUsed;
    if (!isUsed) entry.position = -1;
  }
  const grid = $("grid");
  const isActiveShown = list.active >= first && list.active <= last;
  if (isActiveShown) grid.setAttribute("aria-activedescendant", `row-${list.active}`);
  else grid.removeAttribute("aria-activedescendant");
  wantRows();
}

/** Renders before the next frame, once. */
function ask() {
  if (list.isAsked) return;
  list.isAsked = true;
  requestAnimationFrame(render);
}

const isSelected = (row) => store.isAllSelected || (row !== undefined && store.selected.has(row.id));

function fillRow(entry, position, isMoved) {
  const { element, parts } = entry;
  const row = store.rows.get(position);
  const isChosen = isSelected(row);
  const isActive = position === list.active;
  if (isMoved) {
    entry.position = position;
    element.id = `row-${position}`;
    element.setAttribute("aria-rowindex", position + 2);
    element.classList.add("fresh");
  }
  if (entry.isChosen !== isChosen) {
    entry.isChosen = isChosen;
    element.setAttribute("aria-selected", String(isChosen));
  }
  if (entry.isActive !== isActive) element.classList.toggle("active", (entry.isActive = isActive));
  const waits = row?.waiting?.until ? Math.floor(Date.now() / 1000) : 0;
  if (!isMoved && entry.row === row && entry.waits === waits) return;
  const isSame = entry.row?.id === row?.id;
  entry.row = row;
  entry.waits = waits;
  if (!isSame || isMoved) element.classList.add("fresh");
  else element.classList.remove("fresh");
  element.classList.toggle("blank", !row);
  if (!row) {
    setText(parts.name.firstChild, "…");
    for (const part of [parts.name.lastChild, parts.what.children[1], parts.what.children[2], parts.amount, parts.speed, parts.left]) setText(part, "");
    parts.what.firstChild.hidden = true;
    parts.state.firstChild.setAttribute("class", "icon");
    parts.state.firstChild.firstChild.setAttribute("href", "#");
    element.dataset.state = "";
    entry.state = null;
    return;
  }
  const state = stateOf(row);
  if (entry.state !== state) {
    entry.state = state;
    element.dataset.state = state;
    parts.state.firstChild.setAttribute("class", `icon s-${state}`);
    parts.state.firstChild.firstChild.setAttribute("href", `#i-${state}`);
    setText(parts.state.lastChild, WORDS[state]);
  }
  const isRunning = state === "action";
  const name = nameOf(row);
  setText(parts.name.firstChild, name);
  setText(parts.name.lastChild, hostOf(row.url));
  setTitle(parts.name.firstChild, name);
  const text = isRunning ? "" : stateText(row);
  setTitle(parts.what.lastChild, text);
  const bar = parts.what.firstChild;
  const hasBar = isRunning && row.expected !== null;
  if (bar.hidden === hasBar) bar.hidden = !hasBar;
  if (hasBar) setBar(bar, row.expected > 0 ? row.received / row.expected : 1);
  setText(parts.what.children[1], isRunning ? percent(row.received, row.expected) : "");
  setText(parts.what.children[2], isRunning && row.expected === null ? row.received > 0 ? "running, length unknown" : "running, no answer yet" : text);
  const isWide = state === "error" || (state === "idle" && (row.expected === null || row.error !== null));
  element.classList.toggle("wide", isWide);
  setText(parts.amount, isWide ? "" : state === "complete" || row.received === 0 && !isRunning ? (row.expected ?? row.received) ? bytes(row.expected ?? row.received) : "" : amount(row.received, row.expected));
  setText(parts.speed, isRunning ? rateText(row.bytesPerSecond) : "");
  setText(parts.left, leftOf(row));
  if (isWide) parts.what.setAttribute("aria-colspan", "4");
  else parts.what.removeAttribute("aria-colspan");
}

/** Asks for the rows in view that are not loaded or not fresh; one request at a time. */
function wantRows() {
  if (list.loading || !store.isLive) return;
  const from = Math.floor(list.first / PAGE);
  const to = Math.floor(Math.max(list.first, list.last) / PAGE);
  const missing = [];
  for (let page = from; page <= to; page += 1) if (!store.fresh.has(page)) missing.push(page);
  if (missing.length > 0) loadRows(missing[0], missing[missing.length - 1]);
}

async function loadRows(from, to) {
  const generation = store.generation;
  list.loading = true;
  try {
    const limit = Math.min(1000, (to - from + 1) * PAGE);
    const page = await server.call("fk.tasks", { ...queryObject(), offset: from * PAGE, limit });
    if (generation === store.generation) takePage(page, from, to);
  } catch (error) {
    if (generation === store.generation) failed(error);
    await new Promise((done) => setTimeout(done, 1000));
  } finally {
    list.loading = false;
    list.loaded = performance.now();
    if (generation !== store.generation) ask();
  }
}

function takePage(page, from, to) {
  store.page = page;
  store.total = page.total;
  const offset = page.offset ?? from * PAGE;
  page.tasks.forEach((row, index) => setRow(offset + index, row));
  for (let position = offset + page.tasks.length; position < (to + 1) * PAGE; position += 1) dropRow(position);
  for (let index = from; index <= to; index += 1) store.fresh.add(index);
  // Rows far away are forgotten, so that memory stays small.
  if (store.rows.size > 4000) {
    for (const position of [...store.rows.keys()]) if (Math.abs(position - offset) > 1500) dropRow(position);
    for (const index of [...store.fresh]) if (Math.abs(index * PAGE - offset) > 1400) store.fresh.delete(index);
  }
  followActive();
  showListHead();
  render();
  subscribe();
}

/** The active row is a task, not a position: when the order changes it moves along, and it is lost rather than becoming another task. */
function followActive() {
  if (list.active < 0) return;
  const row = store.rows.get(list.active);
  if (list.activeId === null) {
    if (!row) return;
    list.activeId = row.id;
    if (list.opensActive) openActive();
    return openChosen();
  }
  if (row?.id === list.activeId) return;
  const place = store.places.get(list.activeId);
  if (place !== undefined) list.active = place;
  else if (row) { list.previous = list.active; list.active = -1; list.activeId = null; }
}

/** A new query: another barrel, tab, filter or order. */
function changeQuery(change) {
  Object.assign(store.query, change);
  store.generation += 1;
  store.rows.clear();
  store.places.clear();
  store.fresh.clear();
  list.loading = false;
  list.active = -1;
  list.activeId = null;
  clearSelection();
  $("scroller").scrollTop = 0;
  list.first = 0;
  list.last = Math.min(store.total - 1, 60);
  if (store.isLive) loadRows(0, 0);
  showBarrels();
  showTabs();
  showSort();
}

/** The order or the number of rows may differ: those in view are asked for again, the others when they come into view. */
function refreshList() {
  if (!store.isLive) return;
  store.fresh.clear();
  if (!list.loading) {
    const from = Math.floor(Math.max(0, list.first) / PAGE);
    loadRows(from, Math.max(from, Math.floor(Math.max(0, list.last) / PAGE)));
  }
}

function subscribe() {
  clearTimeout(list.timer);
  list.timer = setTimeout(() => {
    if (!store.isLive) return;
    // Screen readers read rows in the order of the document.
    const shown = list.pool.filter((entry) => entry.position >= 0).sort((one, other) => one.position - other.position);
    if (shown.some((entry, index) => index > 0 && shown[index - 1].element.compareDocumentPosition(entry.element) !== 4)) $("spacer").append(...shown.map((entry) => entry.element));
    const ids = [];
    for (let position = list.first; position <= list.last && ids.length < 499; position += 1) {
      const row = store.rows.get(position);
      if (row) ids.push(row.id);
    }
    if (store.detailsId && !ids.includes(store.detailsId)) ids.push(store.detailsId);
    const key = ids.join(" ") + document.hidden;
    if (key === list.subscribed) return;
    list.subscribed = key;
    server.call("fk.subscribe", { ids, interval: document.hidden ? 5 : 0.5 }).then((status) => {
      takeStatus(status);
      // What changed after the list was read and before this is in no notification.
      if (store.page && status.revision !== store.page.revision) refreshSoon();
    }).catch(() => { list.subscribed = null; });
  }, 150);
}

function showListHead() {
  const page = store.page;
  const { barrel, states, text } = store.query;
  setText($("list-title"), barrel === null ? "All tasks" : visible(barrel));
  const counts = store.query.text ? counted(store.total, "match").replace("matchs", "matches") : counted(store.total, "task");
  const sum = !page || page.total === 0 ? "" : `${counts}, ${amount(page.received, page.expected, page.isExpectedKnown)}`;
  setText($("list-sum"), sum);
  $("grid").setAttribute("aria-rowcount", store.total + 1);
  showStateButtons();
  showAllButtons();
  const isEmpty = page !== null && store.total === 0;
  const empty = $("empty");
  empty.hidden = !isEmpty;
  if (isEmpty) {
    const key = JSON.stringify([barrel, states, text, store.status?.total === 0]);
    if (empty.key !== key) {
      empty.key = key;
      empty.replaceChildren(...emptyWords());
    }
  } else empty.key = null;
}

/** What can be done with all failed or all complete tasks of the list. */
function showStateButtons() {
  const group = $("state-buttons");
  const state = store.query.states?.[0];
  const verb = { error: "retry", complete: "forget" }[state];
  group.hidden = !verb || store.total === 0;
  if (!verb || group.verb === verb) return;
  group.verb = verb;
  group.replaceChildren(button(verb === "retry" ? "Retry all" : "Clear the list", () => act(verb, { count: store.total, query: queryObject(), isSafe: true }), {}, verb));
}

/** The tasks that a verb for all would change, by their states. */
const ALL = {
  suspend: { text: "Suspend all…", states: ["action", "idle"], title: "Suspend all tasks?", what: "stop and keep their bytes", yes: "Suspend" },
  resume: { text: "Resume all…", states: ["suspend"], title: "Resume all suspended tasks?", what: "continue with the bytes that are there, as slots become free", yes: "Resume" },
  retry: { text: "Retry all…", states: ["error", "cancel"], title: "Retry all failed and cancelled tasks?", what: "are queued again", yes: "Retry" },
};

/** How many tasks of the whole work path have these states, and in words: `4 running and 120 waiting tasks`. */
function touched(states) {
  const counts = { ...store.status?.states };
  counts.idle = (counts.idle ?? 0) + (counts.prepare ?? 0);
  const parts = states.filter((state) => counts[state] > 0).map((state) => `${number(counts[state])} ${WORDS[state]}`);
  const count = states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  return { count, words: `${parts.join(" and ")} task${count === 1 ? "" : "s"}` };
}

/** What can be done with all tasks at once, while the list shows all of them. */
function showAllButtons() {
  const group = $("all-buttons");
  const { barrel, states, text } = store.query;
  group.hidden = barrel !== null || states !== null || text !== "" || store.total === 0;
  if (group.children.length === 0) group.append(...Object.entries(ALL).map(([verb, { text }]) => button(text, () => actOnAll(verb), { data: { verb } }, verb)));
  for (const control of group.children) control.disabled = touched(ALL[control.dataset.verb].states).count === 0;
}

/** Says what a verb for all tasks will touch, and performs it. */
async function actOnAll(verb) {
  const { states, title, what, yes } = ALL[verb];
  const { count, words } = touched(states);
  if (!store.isLive) return say(NOT_CONNECTED);
  if (count === 0) return;
  const barrels = store.barrels.length > 0 ? ", in every barrel" : "";
  if (await confirmed(title, `${words} ${count === 1 ? what.replace(/^(stop|continue) /, "$1s ").replace(/^are /, "is ").replace("keep their", "keeps its") : what}${barrels}.`, `${yes} ${counted(count, "task")}`, "Leave as is", false)) {
    await act(verb, { count, object: { all: true }, isSafe: true });
  }
}

function emptyWords() {
  const { barrel, states, text } = store.query;
  if (text) {
    const rest = h("p", {});
    if (states) {
      // The filter may find something under another state.
      const query = { text, limit: 1, ...(barrel === null ? {} : { barrel }) };
      server.call("fk.tasks", query).then(({ total }) => {
        if (total > 0) rest.append(`${counted(total, "task")} in other states: `, button("Show all states", () => changeQuery({ states: null })));
      }).catch(failed);
      return [h("h3", {}, `No ${WORDS[states[0]]} task matches “${visible(text)}”`), rest,
        button("Clear the filter", () => { $("filter").value = ""; changeQuery({ text: "" }); $("grid").focus(); })];
    }
    return [h("h3", {}, `No task matches “${visible(text)}”`), h("p", {}, "The filter looks in names, URLs and barrels."),
      button("Clear the filter", () => { $("filter").value = ""; changeQuery({ text: "" }); $("grid").focus(); })];
  }
  if (states) {
    return [h("h3", {}, `No ${WORDS[states[0]]} tasks`), button("Show all states", () => changeQuery({ states: null }))];
  }
  if (barrel !== null) {
    return [h("h3", {}, "This barrel is empty"), button("Add to this barrel", () => openAdd(), { class: "primary" }, "add")];
  }
  return [h("h3", {}, "Nothing here yet"),
    h("p", {}, "Paste a link anywhere on this page, drop a list file on it, or choose Add."),
    button("Add downloads", () => openAdd(), { class: "primary" }, "add"),
    h("p", {}, "In a terminal: ", h("code", {}, "fk get URL"))];
}

function showTabs() {
  const tabs = $("tabs");
  const counts = tabCounts();
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (tabs.children.length === 0) {
    for (const state of [null, ...STATES]) {
      tabs.append(h("button", {
        type: "button", role: "tab", "aria-controls": "panel", id: `tab-${state ?? "all"}`, data: { state: state ?? "all" },
        onclick: () => changeQuery({ states: state ? [state] : null }),
      }, state ? WORDS[state][0].toUpperCase() + WORDS[state].slice(1) : "All", " ", h("b")));
    }
  }
  const chosen = store.query.states?.[0] ?? "all";
  for (const tab of tabs.children) {
    const state = tab.dataset.state;
    const count = state === "all" ? all : counts[state] ?? 0;
    setText(tab.lastChild, number(count));
    tab.lastChild.classList.toggle("some", count > 0);
    const isChosen = state === chosen;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    if (isChosen && tabs.chosen !== chosen) { tabs.chosen = chosen; tab.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    tab.hidden = count === 0 && !isChosen && (state === "cancel" || state === "suspend");
  }
  $("panel").setAttribute("aria-label", `Tasks, ${chosen === "all" ? "all states" : WORDS[chosen]}`);
}

/** Counts of the states under the present barrel: the server's sums where they are known. */
function tabCounts() {
  const barrel = store.barrels.find((one) => one.name === store.query.barrel);
  const counts = { ...(store.query.barrel === null ? store.status?.states : barrel?.states) };
  counts.idle = (counts.idle ?? 0) + (counts.prepare ?? 0);
  delete counts.prepare;
  delete counts.unknown;
  return counts;
}

function showSort() {
  const { sort, ascending } = store.query;
  if ($("sort").children.length === 0) for (const [value, text] of SORTS) $("sort").append(h("option", { value }, text));
  $("sort").value = sort;
  $("direction").setAttribute("aria-pressed", String(!ascending));
  $("direction-icon").setAttribute("href", ascending ? "#i-up" : "#i-down");
  const heads = $("heads");
  if (heads.children.length === 0) {
    const all = h("span", { class: "pick", role: "columnheader" },
      h("button", { type: "button", class: "box-button", id: "select-all", role: "checkbox", "aria-checked": "false", "aria-label": "Select all tasks of the list", onclick: toggleAll },
        h("span", { class: "box" }, icon("complete"))));
    heads.append(all, h("span", { role: "columnheader" }, h("span", { class: "hidden" }, "Mark")));
    for (const [key, text, name] of HEADS) {
      const cell = h("span", { class: name, role: "columnheader", data: { sort: key ?? "" } });
      cell.append(key ? button(text, () => sortBy(key)) : text);
      heads.append(cell);
    }
  }
  for (const cell of heads.children) {
    const isSorted = cell.dataset.sort && cell.dataset.sort === sort;
    if (isSorted) cell.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
    const control = cell.dataset.sort ? cell.firstChild : null;
    control?.querySelector(".icon")?.remove();
    if (isSorted) control.append(icon(ascending ? "up" : "down"));
  }
}

/** The first choice of a column sorts it, the second reverses it, the third returns to the queue. */
function sortBy(key) {
  const { sort, ascending } = store.query;
  const first = key === "name" || key === "state";
  if (sort !== key) changeQuery({ sort: key, ascending: first });
  else if (ascending === first) changeQuery({ ascending: !first });
  else changeQuery({ sort: "queue", ascending: true });
}

// ---- Active row and selection ----

function moveTo(position, isExtending) {
  if (store.total === 0) return;
  const target = Math.max(0, Math.min(store.total - 1, position));
  if (isExtending) {
    if (list.anchor < 0) list.anchor = Math.max(0, list.active);
    extendTo(target);
  } else list.anchor = target;
  list.opensActive = false;
  list.active = target;
  list.activeId = store.rows.get(target)?.id ?? null;
  reveal(target);
  openChosen();
  render();
}

/** Scrolls as little as necessary to show the position. */
function reveal(position) {
  const scroller = $("scroller");
  const rows = scroller.clientHeight / list.height;
  const top = topPosition();
  let next = top;
  if (position < top) next = position;
  else if (position + 1 > top + rows) next = position + 1 - rows;
  if (next === top) return;
  const whole = store.total * list.height;
  scroller.scrollTop = whole <= list.greatest ? next * list.height : (next / Math.max(1, store.total - rows)) * (list.greatest - scroller.clientHeight);
  // A pixel of the scale may be several rows: the position is kept exactly until somebody scrolls.
  list.exact = { scrollTop: scroller.scrollTop, top: Math.max(0, Math.min(next, store.total - rows)) };
}

function extendTo(target) {
  store.isAllSelected = false;
  store.selected.clear();
  const [from, to] = [Math.min(list.anchor, target), Math.max(list.anchor, target)];
  for (let position = from; position <= to; position += 1) {
    const row = store.rows.get(position);
    if (row) store.selected.set(row.id, row);
  }
  showSelection();
}

function togglePicked(position) {
  const row = store.rows.get(position);
  if (!row) return;
  if (store.isAllSelected) clearSelection();
  if (!store.selected.delete(row.id)) store.selected.set(row.id, row);
  list.anchor = position;
  showSelection();
  ask();
}

function toggleAll() {
  store.isAllSelected = !store.isAllSelected && store.selected.size === 0;
  store.selected.clear();
  showSelection();
  ask();
}

function clearSelection() {
  store.isAllSelected = false;
  store.selected.clear();
  showSelection();
  ask();
}

const selectedCount = () => (store.isAllSelected ? store.total : store.selected.size);

function showSelection() {
  const count = selectedCount();
  const bar = $("selection");
  if (bar.children.length === 0) {
    bar.append(h("b", { id: "selection-count" }),
      button("Suspend", () => act("suspend"), {}, "suspend"), button("Resume", () => act("resume"), {}, "resume"), button("Retry", () => act("retry"), {}, "retry"),
      button("Cancel…", () => act("cancel"), {}, "cancel"), button("Forget…", () => act("forget"), {}, "forget"), button("Clear", () => { clearSelection(); $("grid").focus(); }));
  }
  const hadFocus = bar.contains(document.activeElement);
  bar.hidden = count === 0;
  if (count === 0 && hadFocus) $("grid").focus();
  setText($("selection-count"), `${number(count)} selected`);
  const all = $("select-all");
  if (all) {
    const state = store.isAllSelected ? "true" : store.selected.size > 0 ? "mixed" : "false";
    all.setAttribute("aria-checked", state);
    all.classList.toggle("on", store.isAllSelected);
  }
}

// ---- Verbs ----

const NOT_CONNECTED = "There is no connection to fk rpc: nothing was changed.";
const DONE = { suspend: "suspended", resume: "resumed", retry: "queued again", cancel: "cancelled", forget: "forgotten", trash: "deleted" };

const isInDetails = () => store.details !== null && $("details").contains(document.activeElement);

/** The tasks that a verb is for: the one whose details have the focus, else those selected, else the active one. */
function targets() {
  if (store.isAllSelected && !isInDetails()) {
    const { barrel, states, text } = store.query;
    if (!states && !text) return { count: store.total, object: barrel === null ? { all: true } : { barrel } };
    return { count: store.total, query: queryObject() };
  }
  const rows = isInDetails() ? [] : [...store.selected.values()];
  if (rows.length > 0) return { count: rows.length, rows, object: { ids: rows.map((row) => row.id) } };
  const row = activeTask();
  return row ? { count: 1, rows: [row], object: { ids: [row.id] } } : { count: 0 };
}

function activeTask() {
  if (isInDetails()) return store.details;
  if (list.activeId !== null) return store.rows.get(list.active) ?? null;
  return store.details;
}

/** Performs a verb; those that lose something ask first. */
async function act(verb, given) {
  const target = given ?? targets();
  if (!store.isLive) return say(NOT_CONNECTED);
  if (target.count === 0) return say("No task is chosen. Choose one with the arrow keys.");
  if (!(await mayAct(verb, target))) return;
  try {
    const sums = { applied: 0, unchanged: 0, note: null, only: null };
    $("main").setAttribute("aria-busy", "true");
    let said = performance.now();
    for await (const object of portions(target)) {
      if (object.ids) {
        const results = await server.call(`fk.${verb}`, object);
        if (target.count === 1) sums.only = results[0] ?? null;
        sums.applied += results.filter((one) => one.applied).length;
        sums.unchanged += results.filter((one) => !one.applied).length;
        sums.note ??= results.find((one) => !one.applied)?.note ?? null;
      } else {
        const { applied, unchanged, note } = await server.call(`fk.${verb}`, { ...object, brief: true });
        sums.applied += applied;
        sums.unchanged += unchanged;
        sums.note ??= note;
      }
      if (performance.now() - said < 3000) continue;
      said = performance.now();
      say(`${number(sums.applied + sums.unchanged)} of ${counted(target.count, "task")} done…`);
    }
    report(verb, sums, target);
    if (verb === "forget" || verb === "trash") {
      // They close if their task is gone.
      if (store.detailsId) loadDetails();
      clearSelection();
    }
    refreshSoon(0);
  } catch (error) {
    failed(error);
  } finally {
    $("main").removeAttribute("aria-busy");
  }
}

/** The objects of the calls for a target: at most 250 ids in each. */
async function* portions(target) {
  let ids = target.object?.ids;
  if (target.query) {
    ids = [];
    for (let offset = 0, total = 1; offset < total; offset += 1000) {
      const page = await server.call("fk.tasks", { ...target.query, offset, limit: 1000 });
      ids.push(...page.tasks.map((row) => row.id));
      total = page.total;
    }
  }
  if (!ids) return yield target.object;
  for (let from = 0; from < ids.length; from += 250) yield { ids: ids.slice(from, from + 250) };
}

function mayAct(verb, target) {
  const many = counted(target.count, "task");
  const one = target.rows?.length === 1 ? target.rows[0] : null;
  const name = one ? nameOf(one) : many;
  const isLosing = !target.isSafe && !one || one && (one.state !== "complete" && one.received > 0);
  if (verb === "cancel") {
    return confirmed(one ? "Cancel this task?" : `Cancel ${many}?`, `${name}: unfinished bytes are deleted${one ? ` (${bytes(one.received)} are there)` : ""}. Finished files stay.`, one ? "Cancel the task" : "Cancel the tasks");
  }
  if (verb === "forget" && isLosing) {
    return confirmed(one ? "Forget this task?" : `Forget ${many}?`, `${name}: the record is removed. Finished files stay, unfinished bytes are deleted.`, "Forget");
  }
  if (verb === "trash") return confirmed("Delete the files?", `${name}: the record and every file that it wrote are deleted, finished ones too.`, "Delete");
  return true;
}

function report(verb, sums, target) {
  if (sums.only) return say(`${target.rows?.[0] ? nameOf(target.rows[0]) : visible(sums.only.url)}: ${visible(sums.only.note)}`);
  // A verb for all leaves those alone that it is not about.
  const rest = target.object?.all ? 0 : sums.unchanged;
  say(`${counted(sums.applied, "task")} ${DONE[verb]}${rest > 0 ? `, ${number(rest)} not changed (${visible(sums.note)})` : ""}.`);
}

/** Space: suspends running and waiting tasks, resumes or retries others. */
function toggle() {
  const target = targets();
  if (target.count === 0) return act("suspend", target);
  const rows = target.rows ?? [...store.rows.values()];
  const states = new Set(rows.map(stateOf));
  if (states.has("action") || states.has("idle")) return act("suspend", target);
  if (states.has("suspend")) return act("resume", target);
  if (states.has("error") || states.has("cancel")) return act("retry", target);
  say(`${target.count === 1 ? `${nameOf(rows[0])} is` : "These tasks are"} complete already.`);
}

/** Moves a waiting task in the queue. */
async function moveInQueue(offset, how) {
  const task = activeTask();
  if (!task || stateOf(task) !== "idle") return say("Only a waiting task has a place in the queue.");
  try {
    const place = await server.call("aria2.changePosition", task.gid, offset, how);
    say(`${nameOf(task)} is number ${number(place + 1)} in the queue.`);
    refreshSoon(0);
  } catch (error) { failed(error); }
}

/** The limits that + and - choose from: 64 KiB/s, doubled up to 1 GiB/s, then none. */
const STEPS = Array.from({ length: 15 }, (_, step) => 65536 * 2 ** step);

async function stepLimit(isUp) {
  const limit = store.status?.rateLimit ?? null;
  if (!store.isLive) return say(NOT_CONNECTED);
  if (isUp && limit === null) return say("There is no limit.");
  const from = limit ?? (store.status?.bytesPerSecond >= 1 ? store.status.bytesPerSecond : STEPS[14] + 1);
  const rate = isUp ? STEPS.find((step) => step > limit) ?? null : STEPS.findLast((step) => step < from) ?? STEPS[0];
  // At once, so that the next press begins from it.
  store.status.rateLimit = rate;
  await setLimit({ rate }).catch(failed);
}

async function setLimit(object) {
  const isOfAll = object.barrel === undefined && !object.id;
  // The settings keep the times of the day.
  const answer = await server.call(isOfAll ? "fk.settings" : "fk.limit", object);
  const what = object.barrel !== undefined ? `Barrel ${visible(object.barrel)}` : object.id ? "The task" : "All tasks";
  const now = answer.window ? ` Now, from ${answer.window.replace("-", " to ")}: ${answer.rateNow === null ? "no limit" : `at most ${rateText(answer.rateNow)}`}.` : "";
  say((answer.rate === null ? `${what}: no limit.` : `${what}: at most ${rateText(answer.rate)}.`) + now);
  if (isOfAll && store.status) store.status.rateLimit = answer.rateNow;
  showStatus();
  refreshSoon(0);
}

// ---- Messages ----

let messageTimer;

/** Says the result of an action: shown at the bottom for some seconds, and read by screen readers. */
function say(text, isLasting) {
  clearTimeout(messageTimer);
  setText($("message"), "");
  setText($("message"), text);
  messageTimer = setTimeout(() => setText($("message"), ""), isLasting ? 30000 : 8000);
}

function failed(error) {
  if (error instanceof Refused) return askSecret();
  // An error of the page's own questions comes again each second: it is said once.
  if (store.isLive && $("message").textContent !== error.message) say(error.message, true);
}

/** Files that have ended: one sentence in at least 20 seconds, for screen readers. */
const ended = { complete: null, error: null, timer: null };

function noteEnds(states) {
  const now = { complete: states.complete ?? 0, error: states.error ?? 0 };
  if (ended.complete === null) Object.assign(ended, now);
  if (ended.timer || (now.complete <= ended.complete && now.error <= ended.error)) return;
  ended.timer = setTimeout(() => {
    const latest = store.status?.states ?? now;
    const complete = (latest.complete ?? 0) - ended.complete;
    const error = (latest.error ?? 0) - ended.error;
    const words = [];
    if (complete > 0) words.push(`${counted(complete, "file")} complete`);
    if (error > 0) words.push(`${number(error)} failed`);
    if (words.length > 0) $("quiet").replaceChildren(h("p", {}, `${words.join(", ")}.`));
    Object.assign(ended, { complete: latest.complete ?? 0, error: latest.error ?? 0, timer: null });
  }, 20000);
}

/** Tasks that failed for lack of space: the newest failed tasks are looked at when their number changes. */
const space = { seen: null, failed: 0, at: 0 };

async function lookForSpace() {
  const count = store.status?.states?.error ?? 0;
  if (count === space.seen || performance.now() - space.at < 5000 || !store.isLive) return;
  space.at = performance.now();
  space.seen = count;
  if (count === 0) space.failed = 0;
  else {
    try {
      const page = await server.call("fk.tasks", { states: ["error"], sort: "finished", ascending: false, limit: 200 });
      space.failed = page.tasks.filter((task) => task.error?.code === "no-space").length;
    } catch { space.seen = null; }
  }
  showStatus();
}

const banners = new Map();

/** A warning above the page; an empty text removes it. Its text is read once, when it changes. */
function banner(key, kind, text, action) {
  const old = banners.get(key);
  if (!text) {
    if (old) old.remove();
    banners.delete(key);
    return;
  }
  if (old) {
    if (old.firstChild.textContent !== text) old.firstChild.textContent = text;
    return;
  }
  const words = h("p", { role: kind === "info" ? "status" : "alert" });
  const element = h("div", { class: `banner ${kind}` }, words, action ?? null);
  banners.set(key, element);
  $("banners").append(element);
  words.textContent = text;
}

// ---- Status, barrels, rates ----

function takeStatus(status) {
  store.status = { ...store.status, ...status };
  noteEnds(store.status.states ?? {});
  showStatus();
  showTabs();
}

function showStatus() {
  const status = store.status;
  if (!status) return;
  const states = status.states ?? {};
  setText($("version"), visible(status.version ?? ""));
  const engine = $("engine");
  const isSilent = status.owner === "process" && status.silentSeconds >= 5;
  const isMute = server.silence > 6;
  engine.dataset.is = !store.isLive ? "lost" : isSilent || isMute ? "silent" : status.owner;
  const words = !store.isLive ? "Not connected" : isMute ? "fk rpc does not answer" : isSilent ? `Process ${status.ownerPid} does not answer` : status.owner === "this" ? "Runs the downloads" : status.owner === "process" ? `Process ${status.ownerPid} runs the downloads` : "No process runs the downloads";
  setText(engine, words);
  engine.title = words;
  const rate = status.bytesPerSecond || 0;
  setText($("rate"), rateText(rate));
  const running = states.action ?? 0;
  const waiting = (states.idle ?? 0) + (states.prepare ?? 0);
  setText($("rate-note"), running + waiting === 0 ? "nothing is running" : `${number(running)} running, ${number(waiting)} waiting`);
  const limit = status.rateLimit;
  setText($("limit-text"), limit === null || limit === undefined ? "No limit" : rateText(limit));
  $("open-limit").setAttribute("aria-label", `Rate limit: ${limit ? rateText(limit) : "none"}. Change it`);
  const title = !store.isLive ? "Not connected · fk" : running > 0 ? `${rateText(rate)} · ${number(running)} running · fk` : "fk";
  if (document.title !== title) document.title = title;
  if (!store.isLive) return;
  const isOwned = status.owner === "process";
  banner("owner", "info", isOwned && !isSilent ? `Process ${status.ownerPid} runs the downloads of this work path. This page follows and steers it; the limits of its command apply.` : "");
  banner("nobody", "warn", status.owner === "nobody" ? "No process runs the downloads. Start them in a terminal with: fk run" : "");
  banner("silent", "bad", isSilent ? `Process ${status.ownerPid} has shown no sign of life for ${duration(status.silentSeconds)}: it is stopped or hung. Continue it with: kill -CONT ${status.ownerPid}` : "");
  const full = status.waiting?.["no space"] ?? 0;
  const free = typeof status.free === "number" ? ` ${bytes(status.free)} are free.` : "";
  banner("space", "bad", space.failed > 0 ? `Not enough space on the disk: ${counted(space.failed, "task")} failed.${free} Make room, then retry.` : "");
  banner("full", "bad", full > 0 ? `The disk is full: ${counted(full, "task")} ${full === 1 ? "waits" : "wait"} for space.${free} They continue when there is room.` : "");
}

function showBarrels() {
  const items = [{ name: null, total: store.status?.total ?? 0, states: store.status?.states ?? {}, bytesPerSecond: store.status?.bytesPerSecond }, ...store.barrels];
  const parent = $("barrel-list");
  const byName = new Map([...parent.children].map((item) => [item.name, item]));
  for (const [index, barrel] of items.entries()) {
    let item = byName.get(barrel.name);
    if (!item) {
      const choose = h("button", { type: "button", onclick: () => chooseBarrel(barrel.name) }, h("b"), h("span", { class: "share" }), newBar(), h("span", { class: "note" }, h("span"), h("span", { class: "failed" }), h("span")));
      item = h("li", {}, choose);
      item.name = barrel.name;
    }
    byName.delete(barrel.name);
    if (parent.children[index] !== item) parent.insertBefore(item, parent.children[index] ?? null);
    const [name, share, bar, note] = item.firstChild.children;
    setText(name, barrel.name === null ? "All tasks" : visible(barrel.name));
    const complete = barrel.complete ?? barrel.states?.complete ?? 0;
    const error = barrel.error ?? barrel.states?.error ?? 0;
    // Without all lengths the share of files is the honest one.
    const isByBytes = barrel.isExpectedKnown && barrel.expected > 0;
    const fraction = isByBytes ? barrel.received / barrel.expected : barrel.total > 0 ? complete / barrel.total : 0;
    setText(share, barrel.total > 0 ? percent(fraction, 1) : "");
    setBar(bar, fraction);
    setText(note.firstChild, `${number(complete)}/${number(barrel.total)}`);
    setText(note.children[1], error > 0 ? `${number(error)} failed` : "");
    setText(note.lastChild, barrel.name !== null && barrel.bytesPerSecond > 0 ? rateText(barrel.bytesPerSecond) : "");
    const isChosen = barrel.name === store.query.barrel;
    if (isChosen) item.firstChild.setAttribute("aria-current", "true");
    else item.firstChild.removeAttribute("aria-current");
    item.firstChild.setAttribute("aria-label", `${name.textContent}: ${number(complete)} of ${counted(barrel.total, "file")} complete${error > 0 ? `, ${number(error)} failed` : ""}`);
    if (item.title !== name.textContent) item.title = name.textContent;
  }
  for (const item of byName.values()) item.remove();
  showBarrelButtons();
}

function chooseBarrel(name) {
  changeQuery({ barrel: name, states: null });
  showListHead();
}

/** What can be done with the barrel that is shown. */
function showBarrelButtons() {
  const group = $("barrel-buttons");
  const barrel = store.barrels.find((one) => one.name === store.query.barrel);
  group.hidden = !barrel;
  const key = barrel && JSON.stringify([barrel.name, barrel.origin ?? null]);
  if (!barrel || group.key === key) {
    if (barrel) setText($("barrel-limit"), barrel.rateLimit ? `Limit ${rateText(barrel.rateLimit)}` : "Limit…");
    return;
  }
  group.key = key;
  group.setAttribute("aria-label", `Barrel ${visible(barrel.name)}`);
  const whole = () => {
    const present = store.barrels.find((one) => one.name === barrel.name) ?? barrel;
    return { count: present.total, object: { barrel: barrel.name } };
  };
  group.replaceChildren(
    button("Suspend", () => act("suspend", whole())), button("Resume", () => act("resume", whole())), button("Retry", () => act("retry", whole())),
    h("button", { type: "button", onclick: () => openLimit(barrel.name) }, h("span", { id: "barrel-limit" }, "Limit…")),
    ...(barrel.origin ? [button("Synchronize…", () => openSync(barrel.name, barrel.origin), { data: { act: "sync" } })] : []),
    button("Publish…", () => openPublish(barrel.name), { data: { act: "publish" } }),
    button("Delete barrel…", () => deleteBarrel(barrel.name)));
  setText($("barrel-limit"), barrel.rateLimit ? `Limit ${rateText(barrel.rateLimit)}` : "Limit…");
}

async function deleteBarrel(name) {
  if (!(await confirmed("Delete this barrel?", `${visible(name)}: the barrel is deleted. Its tasks and files stay.`, "Delete the barrel"))) return;
  try {
    await server.call("fk.deleteBarrel", { barrel: name });
    say(`The barrel ${visible(name)} is deleted.`);
    changeQuery({ barrel: null });
    refreshSoon(0);
  } catch (error) { failed(error); }
}

/** The rates of the last 300 seconds, one a second. */
const rates = { samples: new Array(300).fill(null), hover: -1 };

function addRate(rate) {
  rates.samples.push(rate);
  if (rates.samples.length > 300) rates.samples.shift();
  showRates();
}

function showRates() {
  const samples = rates.samples;
  const highest = Math.max(1, ...samples.map((sample) => sample ?? 0));
  const limit = store.status?.rateLimit ?? null;
  const top = highest * 1.08;
  const at = (index) => (index + 1 + 300 - samples.length).toFixed(0);
  const points = [];
  samples.forEach((sample, index) => { if (sample !== null) points.push(`${at(index)} ${(100 - (sample / top) * 100).toFixed(2)}`); });
  const start = points.length > 0 ? points[0].split(" ")[0] : "300";
  $("graph-line").setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
  $("graph-area").setAttribute("d", points.length > 1 ? `M${start} 100L${points.join("L")}L300 100Z` : "");
  $("graph-limit").setAttribute("d", limit !== null && limit < top ? `M0 ${(100 - (limit / top) * 100).toFixed(2)}H300` : "");
  setText($("graph-top"), highest > 1 ? `peak ${rateText(highest)}` : "");
  showRateTip();
  const now = samples[samples.length - 1] ?? 0;
  const words = `Rate of the last 5 minutes: now ${rateText(now)}, peak ${rateText(highest > 1 ? highest : 0)}`;
  if (!rates.said || performance.now() - rates.said > 5000) {
    rates.said = performance.now();
    $("graph-picture").setAttribute("aria-label", words);
  }
}

function showRateTip() {
  const tip = $("graph-tip");
  const index = rates.hover < 0 ? -1 : Math.round(rates.hover * 299) - (300 - rates.samples.length);
  const sample = rates.samples[index];
  tip.hidden = sample === undefined || sample === null;
  $("graph-mark").setAttribute("d", tip.hidden ? "" : `M${rates.hover * 300} 0V100`);
  if (tip.hidden) return;
  setText(tip, `${rateText(sample)}, ${duration(rates.samples.length - 1 - index)} ago`);
  tip.style.left = rates.hover < 0.7 ? `${rates.hover * 100}%` : "auto";
  tip.style.right = rates.hover < 0.7 ? "auto" : `${(1 - rates.hover) * 100}%`;
}

// ---- Details ----

/** Opens the details of the active row, as soon as it is loaded. */
function openActive() {
  list.opensActive = list.active >= 0 && list.activeId === null;
  if (list.activeId !== null) openDetails(list.activeId, true);
}

function openChosen() {
  if (!$("details").hidden && list.activeId !== null && list.activeId !== store.detailsId) openDetails(list.activeId);
}

async function openDetails(id, takesFocus) {
  store.detailsId = id;
  if (store.details?.id !== id) store.details = null;
  if (!store.details) {
    const row = store.rows.get(store.places.get(id));
    if (row) { store.details = { ...row, isPartial: true }; showDetails(); }
  }
  $("details").hidden = false;
  coverPage();
  if (takesFocus || $("main").inert) $("details").focus();
  await loadDetails();
  subscribe();
}

async function loadDetails() {
  const id = store.detailsId;
  if (!id || !store.isLive) return;
  try {
    const details = await server.call("fk.task", { id });
    if (id !== store.detailsId) return;
    store.details = details;
    showDetails();
  } catch (error) {
    if (id === store.detailsId && !(error instanceof Refused) && store.isLive) closeDetails();
    else failed(error);
  }
}

function closeDetails() {
  const hadFocus = $("details").contains(document.activeElement);
  store.detailsId = store.details = null;
  $("details").hidden = true;
  $("details").replaceChildren();
  details.key = null;
  coverPage();
  if (hadFocus) $("grid").focus();
}

const details = { key: null };

/** On a phone the details cover the page: what is behind them cannot be reached. */
function coverPage() {
  const isCovered = !$("details").hidden && matchMedia("(max-width: 640px)").matches;
  for (const part of document.querySelectorAll(".top, .barrels, main")) part.inert = isCovered;
}

/** Builds the pane when task or state change; otherwise only texts and pictures, so that the focus stays. */
function showDetails() {
  const task = store.details;
  const state = stateOf(task);
  const key = `${task.id} ${state} ${task.error?.status}`;
  const pane = $("details");
  if (details.key !== key) {
    const focused = pane.contains(document.activeElement) ? document.activeElement.dataset.act ?? "pane" : null;
    const top = details.key?.startsWith(task.id) ? pane.scrollTop : 0;
    details.key = key;
    const verb = (name, text, symbol) => button(text, () => act(name, { count: 1, rows: [store.details], object: { ids: [task.id] } }), { data: { act: name } }, symbol);
    const acts = [];
    if (state === "action" || state === "idle") acts.push(verb("suspend", "Suspend", "suspend"));
    if (state === "suspend") acts.push(verb("resume", "Resume", "resume"));
    if (state === "idle") acts.push(button("Start next", () => moveInQueue(0, "POS_SET"), { data: { act: "first" } }, "up"));
    if (state === "error" || state === "cancel") acts.push(verb("retry", "Retry", "retry"));
    if (state !== "complete") acts.push(button("New address…", () => openRelink(store.details), { data: { act: "relink" } }, "relink"));
    if (state !== "complete") acts.push(button("Limit…", () => openLimit(null, store.details), { data: { act: "limit" } }, "limit"));
    if (state !== "complete" && state !== "cancel") acts.push(verb("cancel", "Cancel…", "cancel"));
    acts.push(verb("forget", state === "complete" ? "Forget" : "Forget…", "forget"));
    if (state === "complete") acts.push(verb("trash", "Delete file…"));
    details.parts = { now: h("p", { class: "now" }), why: h("p", { class: `why ${state}` }), ranges: h("div"), facts: h("dl", { class: "facts" }), verdicts: h("div"), history: h("div") };
    const { now, why, ranges, facts, verdicts, history } = details.parts;
    details.written = {};
    pane.replaceChildren(
      h("header", {}, h("h2", { id: "details-title" }, nameOf(task)), button("", closeDetails, { class: "plain", "aria-label": "Close the details", data: { act: "close" } }, "forget")),
      now, why, h("div", { class: "acts", role: "group", "aria-label": "Task" }, ...acts), ...(state === "error" && task.error?.status === 401 ? [loginForm(task)] : []), ranges, h("h3", {}, "Task"), facts, verdicts, history);
    pane.scrollTop = top;
    if (focused) (pane.querySelector(`[data-act="${focused}"]`) ?? pane).focus();
  }
  const { now, why, ranges, facts } = details.parts;
  const rate = state === "action" ? rateText(task.bytesPerSecond) : "";
  const sizes = state === "complete" ? bytes(task.received) : amount(task.received, task.expected);
  const words = [WORDS[state], state === "complete" ? "" : percent(task.received, task.expected), sizes, rate, leftOf(task) && `${leftOf(task)} left`].filter(Boolean);
  const nowKey = words.join(" · ");
  if (details.written.now !== nowKey) {
    details.written.now = nowKey;
    const mark = icon(state);
    mark.classList.add(`s-${state}`);
    now.replaceChildren(mark, h("b", {}, words[0]), words.slice(1).join(" · "));
  }
  why.hidden = state === "action" || state === "complete";
  if (!why.hidden) setText(why, reasonText(task, state));
  showRanges(ranges, task, state);
  writeOnce("facts", factsOf(task), (rows) => facts.replaceChildren(...rows.flatMap(([name, ...values]) => [h("dt", {}, name), h("dd", {}, ...values.flatMap((value, index) => (index > 0 ? [h("br"), value] : [value])))])));
  if (task.isPartial) return;
  const told = (title, lines) => (lines.length === 0 ? [] : [h("h3", {}, title), h("ol", { class: "past" }, ...lines.map((line) =>
    h("li", {}, h("span", {}, h("time", { datetime: line.time }, clockText(line.time)), line.by ? ` ${visible(line.by)}` : ""), visible(line.what))))]);
  writeOnce("verdicts", task.verdicts ?? [], (lines) => details.parts.verdicts.replaceChildren(...told("Middlewares", lines)));
  writeOnce("history", task.history ?? [], (lines) => details.parts.history.replaceChildren(...told("History", [...lines].reverse())));
}

/** The fields for the login that a server wants. */
function loginForm(task) {
  const field = (type, name) => h("input", { type, "aria-label": name, placeholder: name, autocomplete: "off", spellcheck: "false", data: { act: type } });
  const user = field("text", "Login name");
  const password = field("password", "Password");
  const send = (event) => {
    event.preventDefault();
    server.call("fk.retry", { ids: [task.id], user: user.value, password: password.value }).then(() => { refreshSoon(0); loadDetails(); }, (error) => say(error.message));
  };
  return h("form", { class: "acts", onsubmit: send }, user, password, h("button", { class: "primary" }, "Retry with this login"));
}

/** Builds a part only when its values have changed. */
function writeOnce(name, values, build) {
  const key = JSON.stringify(values);
  if (details.written[name] === key) return;
  details.written[name] = key;
  build(values);
}

function reasonText(task, state) {
  if (state === "suspend") return "It was suspended. Resume continues it with the bytes that are there.";
  if (state === "cancel") return "It was cancelled. Retry starts it again.";
  if (state === "idle" && task.waiting && task.waiting.reason !== "engine") {
    const words = waitText(task);
    return `${words[0].toUpperCase()}${words.slice(1)}`;
  }
  const words = visible(task.reason ?? stateText(task));
  return words ? words[0].toUpperCase() + words.slice(1) : "";
}

function factsOf(task) {
  const rows = [["Address", visible(task.url)]];
  if (task.link) rows.push(["New address", visible(task.link)]);
  if (task.mirrors?.length) rows.push(["Mirrors", ...task.mirrors.map(visible)]);
  rows.push(task.path ? ["File", visible(task.path)] : ["Folder", visible(task.directory ?? "")]);
  if (task.checksum) rows.push(["Checksum", visible(task.checksum)]);
  if (task.barrels?.length) rows.push(["Barrels", task.barrels.map(visible).join(", ")]);
  if (task.rateLimit) rows.push(["Limit", rateText(task.rateLimit)]);
  if (task.attempts > 0) rows.push(["Attempts", task.maxAttempts ? `${task.attempts} of ${task.maxAttempts}` : String(task.attempts)]);
  if (task.error && stateOf(task) !== "error") rows.push(["Last error", visible(task.error.message)]);
  if (task.error) rows.push(["Error", `${visible(task.error.code)}${task.error.status ? ` ${task.error.status}` : ""}${task.error.retryable ? ", a retry may help" : ""}`]);
  if (task.error?.reason) rows.push(["Cause", visible(task.error.reason)]);
  if (task.insecure) rows.push(["Security", "any certificate is accepted"]);
  for (const [name, value] of Object.entries(task.attributes ?? {})) rows.push([visible(name), visible(value)]);
  for (const [name, time] of [["Added", task.created], ["Started", task.started], ["Finished", task.finished]]) if (time) rows.push([name, clockText(time, true)]);
  rows.push(["Id", visible(task.id.slice(0, 12))]);
  return rows.filter(([, value]) => value);
}

/** The file as a picture: what is there, and where each connection writes. */
function showRanges(parent, task, state) {
  const parts = (task.ranges ?? []).filter((range) => range.position > range.start || range.end !== null);
  const whole = task.expected ?? 0;
  if (parts.length === 0 || whole <= 0 || state === "complete") return parent.replaceChildren();
  const open = state === "action" ? parts.filter((range) => range.position < (range.end ?? Infinity)) : [];
  const at = (offset) => ((offset / whole) * 1000).toFixed(2);
  const shown = parts.slice(0, 512);
  const connections = task.connections ?? 0;
  const title = state === "action" && connections > 0 ? counted(connections, "connection") : counted(parts.length, "range");
  const shapes = [svg("rect", { class: "ground", x: 0, y: 6, width: 1000, height: 22, rx: 2 })];
  for (const range of shown) {
    const isWhole = range.position >= (range.end ?? Infinity);
    shapes.push(svg("rect", { class: isWhole || state !== "action" ? "old" : "have", x: at(range.start), y: 6, width: at(Math.max(0, range.position - range.start)), height: 22 }));
  }
  for (const range of shown) if (range.start > 0) shapes.push(svg("path", { class: "edge", d: `M${at(range.start)} 6V28` }));
  for (const range of open) shapes.push(svg("rect", { class: "tip", x: Math.max(0, Math.min(997, at(range.position) - 1.5)), y: 2, width: 3, height: 30 }));
  const words = `${title}: ${percent(task.received, task.expected)} of ${bytes(whole)} are there`;
  const heads = ["From", "To", "Received", "Share"].map((text) => h("th", { scope: "col" }, text));
  const lines = open.slice(0, 64).map((range) => h("tr", {}, ...[bytes(range.start), range.end === null ? "end" : bytes(range.end), bytes(range.position - range.start),
    range.end === null ? "" : percent(range.position - range.start, range.end - range.start)].map((text) => h("td", {}, text))));
  // The table stays open or closed while its lines change.
  const each = parent.querySelector("details") ?? h("details", {}, h("summary", {}, "Each connection"), h("table", { class: "parts" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody")));
  each.hidden = open.length < 2;
  if (each.open) each.querySelector("tbody").replaceChildren(...lines);
  else if (!each.ontoggle) each.ontoggle = () => { if (store.details) showDetails(); };
  const picture = h("div", {}, h("h3", {}, title), svg("svg", { class: "ranges", viewBox: "0 0 1000 34", preserveAspectRatio: "none", role: "img", "aria-label": words }, ...shapes),
    h("div", { class: "scale", "aria-hidden": "true" }, h("span", {}, "0 B"), h("span", {}, bytes(whole))));
  if (each.parentElement === parent) parent.firstChild.replaceWith(picture);
  else parent.replaceChildren(picture, each);
}

// ---- Dialogs ----

function openDialog(id, focus) {
  const dialog = $(id);
  if (dialog.open) return;
  dialog.back = document.activeElement;
  dialog.showModal();
  if (focus) $(focus).focus();
}

/** Closes a dialog and returns the focus. */
function shut(dialog) {
  if (dialog.open) dialog.close();
}

let answerAsked = null;

/** Asks before something is lost. */
function confirmed(title, text, yes, no = "Keep", isLosing = true) {
  setText($("ask-no"), no);
  $("ask-yes").className = isLosing ? "danger" : "primary";
  setText($("ask-title"), title);
  setText($("ask-text"), text);
  setText($("ask-yes"), yes);
  openDialog("ask-dialog", "ask-no");
  return new Promise((resolve) => { answerAsked = resolve; });
}

function askSecret(problem) {
  store.isLive = false;
  banner("lost", "bad", "");
  if (server.secret !== null) problem = problem ?? "The server refused this secret.";
  try { sessionStorage.removeItem("fk.secret"); } catch { /* a browser may forbid storage */ }
  server.secret = null;
  $("secret-send").disabled = false;
  setText($("secret-problem"), problem ?? "");
  showStatus();
  openDialog("secret-dialog", "secret");
  $("secret").select();
}

const listFile = { name: null, text: null };

function openAdd(text) {
  setText($("add-problem"), "");
  if (store.query.barrel !== null && !$("add-barrel").value) $("add-barrel").value = store.query.barrel;
  fillFolders();
  $("barrel-names").replaceChildren(...store.barrels.map((barrel) => h("option", { value: barrel.name })));
  if (text) $("add-text").value = ($("add-text").value.trimEnd() ? `${$("add-text").value.trimEnd()}\n` : "") + text;
  takeSource();
  openDialog("add-dialog", $("add-is-source").checked ? "add-source" : "add-text");
  showAdd();
}

function fillFolders() {
  const folders = store.status?.folders ?? [];
  $("folder-names").replaceChildren(...folders.map((folder) => h("option", { value: folder })));
}

/** A text that names all files of a source, and no file: `s3://bucket/prefix`, `hf:owner/repo`. */
const SOURCE = /^\s*((s3|gs|az):\/\/\S+|(hf|oci|ollama|gh|ena|ia|doi|zenodo):[^\s/]\S*)\s*$/i;

/** A source that was pasted as a link is one. */
function takeSource() {
  const match = SOURCE.exec($("add-text").value);
  if (!match || listFile.text !== null) return;
  $("add-source").value = match[1];
  $("add-text").value = "";
  $("add-is-source").checked = true;
}

/** The links of the text, or null if it is a list in another form. */
function linksOf(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  return lines.every((line) => /^\s*\S+\s*$/.test(line) && !/^\s+\S+=/.test(line) && /^\s*[a-z][a-z0-9+.-]*:\/\//i.test(line)) ? lines.map((line) => line.trim()) : null;
}

function showAdd() {
  const isSource = $("add-is-source").checked;
  $("add-part-links").hidden = $("add-more").hidden = $("add-paused-label").hidden = isSource;
  $("add-part-source").hidden = $("add-preview").hidden = !isSource;
  const folder = visible(store.folder ?? store.status?.folders?.[0] ?? "");
  $("add-dir").placeholder = isSource ? `${folder.replace(/\/$/, "")}/NAME` : folder;
  $("add-barrel").placeholder = isSource ? "the name of the source" : "none";
  if (!isSource) endJobIn("add-job");
  setText($("add-send"), isSource ? "Fetch all" : "Add");
  const links = listFile.text === null ? linksOf($("add-text").value) : null;
  const isSingle = links !== null && links.length <= 1;
  $("add-text").disabled = listFile.text !== null;
  for (const id of ["add-out", "add-checksum", "add-mirrors"]) $(id).disabled = !isSingle;
  for (const id of ["add-rate", "add-headers", "add-user", "add-password", "add-ca"]) $(id).disabled = links === null;
  $("add-skip").disabled = links !== null;
  setText($("add-single-hint"), links === null ? "A list brings its own names, checksums, mirrors and headers." : "Name, checksum and mirrors apply to a single link.");
  setText($("add-choose"), listFile.text === null ? "Choose a list file…" : "Remove the file");
  const place = links?.find((link) => /^https?:\/\/[^?#]*\/$/i.test(link));
  const what = listFile.text !== null ? `List file ${visible(listFile.name)}, ${bytes(new Blob([listFile.text]).size)}`
    : links === null ? "This is read as a list."
    : place ? `${visible(place)} may be a folder: a link fetches its page. “All files of a source” fetches the files in it.`
    : links.length > 1 ? counted(links.length, "link") : "";
  setText($("add-what"), what);
}

async function takeFile(file) {
  if (!file) return;
  if (file.size > 1.9 * 1048576) {
    openAdd();
    return setText($("add-problem"), `${visible(file.name)} has ${bytes(file.size)}: the page takes lists up to 1.9 MiB. Use the command line: fk get -i FILE`);
  }
  listFile.name = file.name;
  listFile.text = await file.text();
  openAdd();
  showAdd();
}

const lines = (id) => $(id).value.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);

async function sendAdd() {
  if ($("add-is-source").checked) return sendSource("fk.fetch");
  const text = listFile.text ?? $("add-text").value;
  const links = listFile.text === null ? linksOf(text) : null;
  if (text.trim() === "") return setText($("add-problem"), "There is no link. Paste at least one address that begins with https:// or http://.");
  const object = {};
  const put = (key, id) => { const value = $(id).value.trim(); if (value && !$(id).disabled) object[key] = value; };
  put("dir", "add-dir");
  put("barrel", "add-barrel");
  if ($("add-paused").checked) object.paused = true;
  if (links) {
    object.urls = links;
    put("out", "add-out");
    put("checksum", "add-checksum");
    if (!$("add-mirrors").disabled && lines("add-mirrors").length > 0) object.mirrors = lines("add-mirrors");
    put("caFile", "add-ca");
    const headers = lines("add-headers");
    if ($("add-user").value) headers.push(`Authorization: Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${$("add-user").value}:${$("add-password").value}`)))}`);
    if (headers.length > 0) object.headers = headers;
    const rate = parseRate($("add-rate").value);
    if (rate === undefined) return setText($("add-problem"), "The limit is not a rate: write it as 500K or 2M.");
    if (rate !== null) object.rateLimit = rate;
  } else {
    object.text = text;
    if (listFile.name) object.fileName = listFile.name;
    if ($("add-skip").checked) object.skipBad = true;
  }
  setText($("add-problem"), "");
  $("add-send").disabled = true;
  try {
    const answer = await server.call(links ? "fk.add" : "fk.import", object);
    showAdded(links ? answer : answer.added, links ? [] : answer.faults ?? []);
  } catch (error) {
    if (error instanceof Refused) { shut($("add-dialog")); askSecret(); } else setText($("add-problem"), error.message);
  } finally {
    $("add-send").disabled = false;
  }
}

function showAdded(added, faults) {
  const bad = added.filter((one) => one.error);
  const fresh = added.filter((one) => one.new && !one.error).length;
  const known = added.length - bad.length - fresh;
  const words = [fresh > 0 || known === 0 ? `${number(fresh)} added` : null, known > 0 ? `${number(known)} known already` : null].filter(Boolean);
  const wrong = bad.length + faults.length;
  say(`${words.join(", ")}${wrong > 0 ? `, ${number(wrong)} refused` : ""}.`);
  refreshSoon(0);
  if (wrong === 0) {
    listFile.name = listFile.text = null;
    // Nothing stays for the next links: a forgotten barrel or header would go with them.
    $("add-form").reset();
    $("add-more").open = false;
    return shut($("add-dialog"));
  }
  const texts = [...bad.map((one) => `${visible(one.url)}: ${visible(one.error.message)}`), ...faults.map((one) => `Line ${one.line}: ${visible(one.reason)}`)];
  $("add-problem").replaceChildren(h("p", {}, `${counted(wrong, "entry").replace("entrys", "entries")} refused:`), h("ul", {}, ...texts.slice(0, 50).map((line) => h("li", {}, line))),
    ...(texts.length > 50 ? [h("p", {}, `and ${texts.length - 50} more`)] : []));
  if (bad.length > 0 && faults.length === 0) $("add-text").value = bad.map((one) => one.url).join("\n");
}

function openLimit(barrel, task) {
  const options = [h("option", { value: "all" }, "All tasks together"), ...store.barrels.map((one) => h("option", { value: `b${one.name}` }, `Barrel ${visible(one.name)}, together`))];
  if (task) options.push(h("option", { value: `t${task.id}` }, `Only ${nameOf(task)}`));
  $("limit-scope").replaceChildren(...options);
  $("limit-scope").value = task ? `t${task.id}` : barrel !== null && barrel !== undefined ? `b${barrel}` : "all";
  setText($("limit-problem"), "");
  openDialog("limit-dialog", "limit-rate");
  showLimit();
}

function limitObject() {
  const scope = $("limit-scope").value;
  return scope === "all" ? {} : scope[0] === "b" ? { barrel: scope.slice(1) } : { id: scope.slice(1) };
}

async function showLimit() {
  const scope = $("limit-scope").value;
  $("limit-rate").value = "";
  try {
    const { rate } = await server.call(scope === "all" ? "fk.settings" : "fk.limit", limitObject());
    // What was typed in the meantime stays.
    if (scope !== $("limit-scope").value || $("limit-rate").value !== "") return;
    $("limit-rate").value = $("limit-rate").known = rate === null ? "" : bytes(rate) + "/s";
    $("limit-rate").placeholder = "none";
    $("limit-rate").select();
  } catch (error) { setText($("limit-problem"), error.message); }
}

async function sendLimit(rate) {
  if (rate === undefined) return setText($("limit-problem"), "This is not a rate: write it as 500K or 2M, or none.");
  try {
    await setLimit({ ...limitObject(), rate });
    shut($("limit-dialog"));
  } catch (error) { setText($("limit-problem"), error.message); }
}

// ---- Settings ----

async function openSettings() {
  if (!store.isLive) return say(NOT_CONNECTED);
  setText($("settings-problem"), "");
  fillFolders();
  const status = store.status;
  const isOther = status?.owner === "process";
  $("settings-owner").hidden = !isOther;
  if (isOther) setText($("settings-owner"), `Process ${status.ownerPid} runs the downloads with its own number of files and connections. Those here apply when fk rpc runs them.`);
  try { fillSettings(await server.call("fk.settings")); } catch (error) { return failed(error); }
  openDialog("settings-dialog", "set-jobs");
}

const rateValue = (rate) => (rate === null ? "" : `${bytes(rate)}/s`);

function fillSettings(given) {
  const fill = (id, value) => { $(id).value = $(id).known = String(value ?? ""); };
  store.folder = given.folder;
  fill("set-jobs", given.jobs);
  fill("set-connections", given.connections);
  fill("set-folder", given.folder);
  fill("set-rate", rateValue(given.rate));
  $("set-times").replaceChildren(...given.daily.map(timeRow));
  $("set-times").known = timesKey();
  showTimes();
}

/** The fields of a time of the day with its limit. */
function timeRow(window = { time: "08:00-18:00", rate: 1048576 }) {
  const [from, to] = window.time.split("-");
  const field = (name, value, properties) => h("input", { "aria-label": name, required: true, autocomplete: "off", data: { part: name }, value, ...properties });
  const row = h("li", {}, field("From", from, { type: "time" }), h("span", {}, "to"), field("To", to === "24:00" ? "00:00" : to, { type: "time" }),
    field("Limit in this time", rateValue(window.rate), { placeholder: "no limit", required: false }),
    button("", () => { const next = row.nextElementSibling ?? row.previousElementSibling; row.remove(); showTimes(); (next?.querySelector("button") ?? $("set-add-time")).focus(); }, { class: "plain", "aria-label": "Remove this time" }, "forget"));
  row.window = window;
  row.shown = rateValue(window.rate);
  return row;
}

const timeFields = (row) => [...row.querySelectorAll("input")].map((field) => field.value);
const timesKey = () => JSON.stringify([...$("set-times").children].map(timeFields));

function showTimes() { setText($("set-rate-label"), $("set-times").children.length > 0 ? "Limit at other times" : "Limit"); }

/** The members of `fk.settings` that differ from what was shown; a text says what is wrong. */
function settingsObject() {
  const object = {};
  const isChanged = (id) => $(id).value.trim() !== $(id).known;
  if (isChanged("set-jobs")) object.jobs = Number($("set-jobs").value);
  if (isChanged("set-connections")) object.connections = $("set-connections").value.trim() === "" ? null : Number($("set-connections").value);
  if (isChanged("set-folder")) object.folder = $("set-folder").value.trim();
  if (isChanged("set-rate")) {
    object.rate = parseRate($("set-rate").value);
    if (object.rate === undefined) return "The limit is no rate: write it as 500K or 2M, or leave it empty.";
  }
  if (timesKey() === $("set-times").known) return object;
  object.daily = [];
  for (const row of $("set-times").children) {
    const [from, to, text] = timeFields(row);
    // An unchanged limit keeps its bytes, which the text has rounded.
    const rate = text === row.shown ? row.window.rate : parseRate(text);
    if (rate === undefined) return `The limit from ${from} to ${to} is no rate: write it as 500K or 2M, or leave it empty.`;
    object.daily.push({ time: `${from}-${to === "00:00" ? "24:00" : to}`, rate });
  }
  return object;
}

async function sendSettings() {
  const object = settingsObject();
  if (typeof object === "string") return setText($("settings-problem"), object);
  $("settings-send").disabled = true;
  try {
    const answer = await server.call("fk.settings", object);
    fillSettings(answer);
    if (store.status) store.status.rateLimit = answer.rateNow;
    shut($("settings-dialog"));
    say("The settings are changed.");
    showStatus();
  } catch (error) { setText($("settings-problem"), error.message); } finally { $("settings-send").disabled = false; }
}

// ---- Jobs ----

const RESULTS = { new: "new", changed: "changed", same: "unchanged", gone: "gone", deleted: "deleted" };
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Shows a job in an element until it ends; another job may take the place meanwhile. Returns the job as it ended. */
async function follow(id, job, words) {
  const place = $(id);
  place.job = job.id;
  place.hidden = false;
  while (true) {
    if (place.job === job.id) showJob(place, job, words);
    if (job.state !== "running") return job;
    await pause(500);
    if (store.isLive) job = await server.call("fk.job", { id: job.id });
  }
}

/** Ends a preview that nobody looks at any more. */
function endJobIn(id) {
  const place = $(id);
  if (place.job && place.isEnding) server.call("fk.endJob", { id: place.job }).catch(() => {});
  place.job = null;
  place.isEnding = false;
  place.hidden = true;
  place.replaceChildren();
}

/** `3 new (1.2 GiB), 1 changed, 7 unchanged` */
function sumsOf(job) {
  return Object.entries(RESULTS).filter(([key]) => job.sums[key]?.count > 0)
    .map(([key, word]) => `${number(job.sums[key].count)} ${word}${job.sums[key].bytes > 0 ? ` (${bytes(job.sums[key].bytes)})` : ""}`).join(", ");
}

function showJob(place, job, words) {
  const sums = sumsOf(job);
  const isRunning = job.state === "running";
  const key = JSON.stringify([job.id, job.state, job.sums, job.files?.length]);
  if (place.key === key) return;
  place.key = key;
  // What would be fetched comes first.
  const files = [...(job.files ?? [])].sort((one, other) => (one.result === "same") - (other.result === "same"));
  const total = Object.values(job.sums).reduce((sum, one) => sum + one.count, 0);
  const text = isRunning ? `${words}${sums ? ` ${sums} so far.` : ""}` : job.kind === "preview" || job.kind === "sync" ? sums || (job.state === "done" ? "No files." : "") : "";
  const line = (file) => h("li", {}, h("b", { class: `r-${file.result}` }, RESULTS[file.result] ?? file.result), h("span", { class: "name" }, visible(file.name)), h("span", {}, file.size === null ? "" : bytes(file.size)));
  place.replaceChildren(
    h("p", { role: isRunning ? null : "status" }, text),
    ...(files.length > 0 ? [h("ul", { class: "files", tabindex: "0", "aria-label": "Files" }, ...files.slice(0, 300).map(line), ...(total > Math.min(300, files.length) ? [h("li", {}, `and ${number(total - Math.min(300, files.length))} more`)] : []))] : []));
}

/** Why a job failed, as the program says it. */
const faultOf = (job) => (job.messages.length > 0 ? job.messages.map(visible).join("\n") : job.state === "stopped" ? "It was ended." : `fk ended with status ${job.status}.`);

const words = (id) => $(id).value.split(/[\s,]+/).filter(Boolean);

/** Asks what a source has, or fetches it. */
async function sendSource(method) {
  const source = $("add-source").value.trim();
  const isFetch = method === "fk.fetch";
  if (source === "") return setText($("add-problem"), "There is no source. Write a folder such as https://example.com/pub/, or a name such as s3://BUCKET/PREFIX.");
  const object = { source };
  for (const [key, id] of [["dir", "add-dir"], ["barrel", "add-barrel"]]) if ($(id).value.trim()) object[key] = $(id).value.trim();
  for (const [key, id] of [["include", "add-include"], ["exclude", "add-exclude"]]) if (words(id).length > 0) object[key] = words(id);
  setText($("add-problem"), "");
  endJobIn("add-job");
  $("add-send").disabled = $("add-preview").disabled = true;
  try {
    const started = await server.call(method, object);
    $("add-job").isEnding = !isFetch;
    const job = await follow("add-job", started, isFetch ? "The source is read, and its files are added…" : "The source is read…");
    if ($("add-job").job === job.id) $("add-job").isEnding = false;
    refreshSoon(0);
    const isShown = $("add-job").job === job.id;
    if (job.state === "done" && isFetch) {
      say(`The files of ${visible(job.title)} are added.${job.messages.length > 0 ? ` ${visible(job.messages[0])}` : ""}`);
      if (!isShown) return;
      $("add-form").reset();
      shut($("add-dialog"));
    } else if (isShown && (job.state !== "done" || job.messages.length > 0)) setText($("add-problem"), faultOf(job));
    else if (isFetch) say(faultOf(job), true);
  } catch (error) {
    if (error instanceof Refused) { shut($("add-dialog")); askSecret(); } else setText($("add-problem"), error.message);
  } finally { $("add-send").disabled = $("add-preview").disabled = false; }
}

async function openSync(name, origin) {
  if (!store.isLive) return say(NOT_CONNECTED);
  $("sync-form").barrel = name;
  setText($("sync-name"), `${visible(name)}, from ${visible(origin)}`);
  setText($("sync-problem"), "");
  endJobIn("sync-job");
  $("sync-delete").checked = false;
  $("sync-delete-label").hidden = true;
  $("sync-send").disabled = true;
  showSync();
  openDialog("sync-dialog");
  try {
    const started = await server.call("fk.sync", { barrel: name, dryRun: true });
    $("sync-job").isEnding = true;
    const job = await follow("sync-job", started, "The source is read…");
    if ($("sync-job").job !== job.id) return;
    $("sync-job").isEnding = false;
    if (job.state !== "done") setText($("sync-problem"), faultOf(job));
    $("sync-form").gone = job.sums.gone?.count ?? 0;
    $("sync-delete-label").hidden = $("sync-form").gone === 0 || job.state !== "done";
    setText($("sync-delete-text"), `Also delete ${counted($("sync-form").gone, "file")} that ${$("sync-form").gone === 1 ? "is" : "are"} gone from the source, if fk wrote ${$("sync-form").gone === 1 ? "it" : "them"} and nobody has changed ${$("sync-form").gone === 1 ? "it" : "them"}`);
    $("sync-send").disabled = job.state === "stopped" || (job.state === "failed" && Object.keys(job.sums).length === 0);
  } catch (error) { setText($("sync-problem"), error.message); }
}

function showSync() {
  const deletes = $("sync-delete").checked;
  const send = $("sync-send");
  setText(send, deletes ? `Synchronize and delete ${counted($("sync-form").gone ?? 0, "file")}` : "Synchronize");
  send.className = deletes ? "danger" : "primary";
}

async function sendSync() {
  const barrel = $("sync-form").barrel;
  const object = { barrel };
  // Not more than what was shown.
  if ($("sync-delete").checked) Object.assign(object, { delete: true, maxDelete: String($("sync-form").gone) });
  setText($("sync-problem"), "");
  $("sync-send").disabled = true;
  try {
    const started = await server.call("fk.sync", object);
    shut($("sync-dialog"));
    say(`${visible(barrel)}: the source is read, then new and changed files are fetched.`);
    refreshSoon(0);
    const job = await follow("sync-job", started, "");
    say(job.state === "done" ? `${visible(barrel)} is in step: ${sumsOf(job) || "nothing new"}.` : `${visible(barrel)} is not in step. ${faultOf(job)}`, job.state !== "done");
    refreshSoon(0);
  } catch (error) {
    if ($("sync-dialog").open) setText($("sync-problem"), error.message);
    else failed(error);
  } finally { $("sync-send").disabled = false; }
}

function openPublish(name) {
  if (!store.isLive) return say(NOT_CONNECTED);
  const barrel = store.barrels.find((one) => one.name === name);
  $("publish-form").barrel = name;
  fillFolders();
  setText($("publish-name"), `${visible(name)}: ${number(barrel?.complete ?? 0)} of ${counted(barrel?.total ?? 0, "file")} complete`);
  setText($("publish-problem"), barrel && barrel.complete < barrel.total ? "All files have to be complete first." : "");
  endJobIn("publish-job");
  $("publish-dir").value = "";
  $("publish-dir").placeholder = visible(`${store.folder ?? store.status?.folders?.[0] ?? ""}/${name}-published`);
  openDialog("publish-dialog", "publish-dir");
}

async function sendPublish() {
  const barrel = $("publish-form").barrel;
  setText($("publish-problem"), "");
  $("publish-send").disabled = true;
  try {
    const started = await server.call("fk.publish", { barrel, dir: $("publish-dir").value.trim(), ...($("publish-power").checked ? { durability: "power" } : {}) });
    const job = await follow("publish-job", started, "The folder is made…");
    if (job.state !== "done") return setText($("publish-problem"), faultOf(job));
    const { version = "", files = 0, changed = true } = job.result ?? {};
    shut($("publish-dialog"));
    say(`${visible(job.result?.directory ?? "")}: ${changed ? "" : "already "}version ${visible(version).slice(0, 19)} of ${visible(barrel)}, ${counted(files, "file")}.`, true);
  } catch (error) { setText($("publish-problem"), error.message); } finally { $("publish-send").disabled = false; }
}

function openRelink(task) {
  if (!task) return say("No task is chosen. Choose one with the arrow keys.");
  $("relink-form").task = task;
  setText($("relink-name"), `${nameOf(task)}, now ${visible(task.link ?? task.url)}`);
  setText($("relink-problem"), "");
  $("relink-url").value = "";
  openDialog("relink-dialog", "relink-url");
}

async function sendRelink() {
  const task = $("relink-form").task;
  try {
    await server.call("fk.relink", { id: task.id, url: $("relink-url").value.trim() });
    say(`${nameOf(task)} has the new address.`);
    shut($("relink-dialog"));
    refreshSoon(0);
    loadDetails();
  } catch (error) { setText($("relink-problem"), error.message); }
}

// ---- Keys ----

const rowsOfPage = () => Math.max(1, Math.floor($("scroller").clientHeight / list.height) - 1);
const position = () => (list.active >= 0 ? list.active : (list.previous ?? -1));

/** [keys, text, action, whether it works without "single keys as commands"]. The help is made from this table. */
const KEYS = [
  [["ArrowDown", "j"], "next task; with Shift selects", (event) => moveTo(position() + 1, event.shiftKey)],
  [["ArrowUp", "k"], "previous task; with Shift selects", (event) => moveTo(position() < 0 ? 0 : position() - 1, event.shiftKey)],
  [["PageDown"], "a page down", (event) => moveTo(position() + rowsOfPage(), event.shiftKey)],
  [["PageUp"], "a page up", (event) => moveTo(position() - rowsOfPage(), event.shiftKey)],
  [["Home", "g"], "first task", (event) => moveTo(0, event.key === "Home" && event.shiftKey)],
  [["End", "G"], "last task", (event) => moveTo(store.total - 1, event.key === "End" && event.shiftKey)],
  [["Enter"], "details of the task; Esc closes them", () => openActive()],
  [[" "], "suspend a running or waiting task, resume or retry another one", () => toggle()],
  [["x"], "select the task, or not", () => list.active >= 0 && togglePicked(list.active)],
  [["Ctrl+a"], "select all tasks of the list", () => { store.isAllSelected = false; store.selected.clear(); toggleAll(); }],
  [["r"], "retry", () => act("retry")],
  [["c"], "cancel: stop and delete the unfinished bytes; asks", () => act("cancel")],
  [["f"], "forget: a finished file stays, unfinished bytes are deleted", () => act("forget")],
  [["n"], "new address for the task (relink)", () => openRelink(activeTask())],
  [["J"], "a place down in the queue", () => moveInQueue(1, "POS_CUR")],
  [["K"], "a place up in the queue", () => moveInQueue(-1, "POS_CUR")],
  [["a"], "add downloads", () => openAdd()],
  [["/"], "filter", () => { $("filter").focus(); $("filter").select(); }],
  [["b"], "go to the barrels", () => (document.querySelector("#barrel-list [aria-current]") ?? $("grid")).focus()],
  [["s"], "next order of the list", () => nextSort()],
  [["["], "previous state", () => nextTab(-1)],
  [["]"], "next state", () => nextTab(1)],
  [["+"], "raise the rate limit of all tasks", () => stepLimit(true)],
  [["-"], "lower the rate limit of all tasks", () => stepLimit(false)],
  [["l"], "set a rate limit", () => openLimit(store.query.barrel)],
  [[","], "settings", () => openSettings()],
  [["?"], "this help", () => openHelp()],
  [["Escape"], "close the details, the selection, the filter", () => escape()],
];
const KEY_NAMES = { ArrowDown: "↓", ArrowUp: "↑", " ": "space", PageDown: "PgDn", PageUp: "PgUp", Escape: "Esc" };
const keyTable = new Map(KEYS.flatMap(([keys, text, action]) => keys.map((key) => [key, action])));
/** Keys that are the grid's own: they work there whatever is chosen in the help. */
const GRID_KEYS = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter", " ", "Ctrl+a"]);

function nextSort() {
  const index = SORTS.findIndex(([key]) => key === store.query.sort);
  const [sort, text] = SORTS[(index + 1) % SORTS.length];
  changeQuery({ sort, ascending: true });
  say(`Order: ${text}.`);
}

function nextTab(step) {
  const states = [null, ...STATES];
  const index = states.indexOf(store.query.states?.[0] ?? null);
  const state = states[(index + step + states.length) % states.length];
  changeQuery({ states: state ? [state] : null });
}

function escape() {
  if (!$("details").hidden) return closeDetails();
  if (selectedCount() > 0) return clearSelection();
  if (store.query.text) { $("filter").value = ""; changeQuery({ text: "" }); }
  $("grid").focus();
}

function openHelp() {
  if ($("keys").children.length === 0) {
    $("keys").append(...KEYS.map(([keys, text]) => h("div", {}, h("dt", {}, ...keys.flatMap((key, index) => [...(index > 0 ? [" "] : []), h("kbd", {}, KEY_NAMES[key] ?? key)])), h("dd", {}, text))));
  }
  openDialog("help-dialog", "help-title");
}

const wantsKeys = () => { try { return localStorage.getItem("fk.keys") !== "off"; } catch { return true; } };

function keyDown(event) {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const target = event.target;
  const isField = target.matches("input, textarea, select");
  const inGrid = target === $("grid") || target === $("scroller") || target === document.body;
  if (isField) {
    if (target === $("filter") && (event.key === "Enter" || event.key === "ArrowDown")) { event.preventDefault(); $("grid").focus(); if (list.active < 0) moveTo(0); }
    if (event.key === "Escape" && target === $("filter")) { event.preventDefault(); if (target.value) { target.value = ""; changeQuery({ text: "" }); } $("grid").focus(); }
    return;
  }
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.altKey || (isCommand && event.key.toLowerCase() !== "a")) return;
  const key = isCommand ? "Ctrl+a" : event.key;
  const action = keyTable.get(key);
  if (!action) return;
  if (GRID_KEYS.has(key) ? !inGrid : key !== "Escape" && !wantsKeys()) return;
  if (GRID_KEYS.has(key) || key === "Escape") $("grid").classList.add("keys");
  event.preventDefault();
  action(event);
}

/** Arrow keys within the tabs and the barrels. */
function arrows(parent, selector) {
  parent.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const items = [...parent.querySelectorAll(selector)].filter((item) => !item.hidden);
    const index = items.indexOf(document.activeElement);
    if (!step || index < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = items[(index + step + items.length) % items.length];
    next.focus();
    if (next.role === "tab") next.click();
  });
}

// ---- Start ----

const server = new Connection({
  opened: connect,
  lost() {
    store.isLive = false;
    list.subscribed = null;
    document.body.classList.add("stale");
    showStatus();
    tickLost();
  },
  changed(change) {
    const { tasks, listChanged, ...status } = change;
    takeStatus(status);
    let isSeen = false;
    for (const row of tasks ?? []) {
      const place = store.places.get(row.id);
      if (place !== undefined) { setRow(place, row); isSeen = true; }
      if (row.id === store.detailsId && store.details) {
        store.details = { ...store.details, ...row, reason: row.state === store.details.state ? store.details.reason : null };
        showDetails();
      }
    }
    if (isSeen) ask();
    if (listChanged) refreshSoon();
  },
});

/** The first calls of a connection. */
async function connect() {
  try {
    const status = await server.call("fk.status");
    const [history, barrels] = await Promise.all([server.call("fk.rates", { seconds: 300 }).catch(() => null), server.call("fk.barrels")]);
    server.failures = 0;
    store.isLive = true;
    document.body.classList.remove("stale");
    banner("lost", "bad", "");
    if (banners.size === 0 && ended.wasLost) say("Connected again.");
    ended.wasLost = false;
    if (history) rates.samples = [...new Array(300).fill(null), ...history.samples].slice(-300);
    store.barrels = barrels;
    takeStatus(status);
    showBarrels();
    showRates();
    store.fresh.clear();
    store.generation += 1;
    list.loading = false;
    loadRows(Math.floor(list.first / PAGE), Math.floor(Math.max(list.first, list.last) / PAGE));
    if (store.detailsId) loadDetails();
  } catch (error) {
    if (error instanceof Refused) askSecret();
    else if (server.isOpen) { say(error.message, true); server.socket.close(); }
  }
}

let refreshTimer = null;

/** The list and the barrels again: at once, or at most once a second. */
function refreshSoon(delay) {
  if (refreshTimer && delay === undefined) return;
  clearTimeout(refreshTimer);
  const wait = delay ?? Math.max(50, 1000 - (performance.now() - (list.loaded ?? 0)));
  refreshTimer = setTimeout(async () => {
    refreshTimer = null;
    if (!store.isLive) return;
    refreshList();
    await loadBarrels();
  }, document.hidden ? 5000 : wait);
}

let isLoadingBarrels = false;

async function loadBarrels() {
  if (isLoadingBarrels || !store.isLive) return;
  isLoadingBarrels = true;
  try {
    store.barrels = await server.call("fk.barrels");
    if (store.query.barrel !== null && !store.barrels.some((barrel) => barrel.name === store.query.barrel)) changeQuery({ barrel: null });
    showBarrels();
    showTabs();
  } catch (error) { failed(error); } finally { isLoadingBarrels = false; }
}

/** The words about a lost connection. They change only when an attempt begins or ends, so that they are not read each second. */
function tickLost() {
  if (store.isLive || $("secret-dialog").open) return;
  ended.wasLost = true;
  for (const key of ["owner", "nobody", "silent", "full", "space", "mute"]) banner(key, "", "");
  banner("lost", "bad", "The connection to fk rpc is lost. The page shows the last known state and tries to connect again. If fk rpc has ended, start it again: received bytes are kept.",
    button("Try now", () => { server.failures = 0; server.open(); }));
}

let seconds = 0;

function everySecond() {
  seconds += 1;
  const silence = server.silence;
  if (silence > 6 || $("engine").dataset.is === "silent") showStatus();
  banner("mute", "warn", store.isLive && silence > 6 ? "fk rpc has not answered for some seconds. It may be busy or stopped." : "");
  if (silence > 45) server.socket.close();
  if (!store.isLive) return;
  addRate(store.status?.bytesPerSecond ?? 0);
  ask();
  if (document.hidden) return;
  const isBusy = (store.status?.states?.action ?? 0) > 0;
  if (isBusy && seconds % 2 === 0) loadBarrels();
  if (store.detailsId && (isBusy || seconds % 3 === 0)) loadDetails();
  // Not all of the status is in notifications: who runs the downloads, and the space on the disk.
  if (seconds % 3 === 0) server.call("fk.status").then(takeStatus).catch(failed);
  if (seconds % 10 === 0) refreshSoon();
  lookForSpace();
}

function submit(id, action) {
  $(id).addEventListener("submit", (event) => { event.preventDefault(); action(); });
}

function start() {
  showTabs();
  showSort();
  showSelection();
  const measure = () => {
    coverPage();
    list.height = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--row"), 10) || 36;
    ask();
  };
  measure();
  new ResizeObserver(measure).observe($("scroller"));
  $("scroller").addEventListener("scroll", () => { ask(); subscribe(); }, { passive: true });

  const grid = $("grid");
  $("spacer").addEventListener("click", (event) => {
    const entry = event.target.closest(".task")?.entry;
    if (!entry || entry.position < 0 || !entry.row) return;
    grid.classList.remove("keys");
    grid.focus({ preventScroll: true });
    if (event.target.closest(".pick") || event.ctrlKey || event.metaKey) {
      list.active = entry.position;
      list.activeId = entry.row.id;
      return togglePicked(entry.position);
    }
    if (event.shiftKey) return moveTo(entry.position, true);
    moveTo(entry.position);
    openDetails(entry.row.id);
  });
  grid.addEventListener("focus", () => { if (list.active < 0 && store.total > 0 && grid.matches(":focus-visible")) moveTo(Math.max(0, Math.ceil(topPosition()))); });
  document.addEventListener("keydown", keyDown);
  arrows($("tabs"), "[role=tab]");
  arrows($("barrel-list"), "button");
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); grid.focus(); });

  let typing;
  $("filter").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => changeQuery({ text: $("filter").value.trim() }), 150);
  });
  $("sort").addEventListener("change", () => changeQuery({ sort: $("sort").value, ascending: true }));
  $("direction").addEventListener("click", () => changeQuery({ ascending: !store.query.ascending }));
  $("open-add").addEventListener("click", () => openAdd());
  $("open-limit").addEventListener("click", () => openLimit(null));
  $("open-help").addEventListener("click", openHelp);
  $("open-settings").addEventListener("click", openSettings);

  const graph = $("graph");
  graph.addEventListener("pointermove", (event) => {
    const box = graph.getBoundingClientRect();
    rates.hover = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    showRateTip();
  });
  graph.addEventListener("pointerleave", () => { rates.hover = -1; showRateTip(); });

  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("close", () => {
      // The event comes late: the dialog may be open again for another question.
      if (dialog.open) return;
      if (dialog.id === "ask-dialog") { answerAsked?.(false); answerAsked = null; }
      if (dialog.id === "add-dialog") endJobIn("add-job");
      if (dialog.id === "sync-dialog") endJobIn("sync-job");
      if (dialog.back?.isConnected && document.activeElement === document.body) dialog.back.focus();
    });
    for (const close of dialog.querySelectorAll("[data-close]")) close.addEventListener("click", () => shut(dialog));
  }
  // Without the secret there is nothing to go back to.
  $("secret-dialog").addEventListener("cancel", (event) => event.preventDefault());
  submit("secret-form", () => {
    server.secret = $("secret").value;
    $("secret-send").disabled = true;
    setText($("secret-problem"), "");
    server.call("fk.status").then(() => {
      try { if ($("secret-keep").checked) sessionStorage.setItem("fk.secret", server.secret); } catch { /* then it is asked for again */ }
      $("secret").value = "";
      $("secret-send").disabled = false;
      shut($("secret-dialog"));
      connect();
    }, (error) => (error instanceof Refused ? askSecret() : askSecret(error.message)));
  });
  submit("ask-form", () => { answerAsked?.(true); answerAsked = null; shut($("ask-dialog")); });
  submit("add-form", sendAdd);
  // A limit that was only looked at keeps its bytes, which the text has rounded.
  submit("limit-form", () => ($("limit-rate").value === $("limit-rate").known ? shut($("limit-dialog")) : sendLimit(parseRate($("limit-rate").value))));
  submit("relink-form", sendRelink);
  submit("settings-form", sendSettings);
  submit("sync-form", sendSync);
  submit("publish-form", sendPublish);
  $("set-add-time").addEventListener("click", () => { $("set-times").append(timeRow()); showTimes(); $("set-times").lastChild.querySelector("input").focus(); });
  $("sync-delete").addEventListener("change", showSync);
  $("add-preview").addEventListener("click", () => sendSource("fk.preview"));
  for (const id of ["add-is-links", "add-is-source"]) $(id).addEventListener("change", () => { setText($("add-problem"), ""); showAdd(); });
  $("limit-none").addEventListener("click", () => sendLimit(null));
  $("limit-scope").addEventListener("change", showLimit);
  $("add-text").addEventListener("input", () => { takeSource(); showAdd(); if ($("add-is-source").checked) $("add-source").focus(); });
  $("add-form").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    $("add-form").requestSubmit();
  });
  $("add-choose").addEventListener("click", () => {
    if (listFile.text === null) return $("add-file").click();
    listFile.name = listFile.text = null;
    $("add-file").value = "";
    showAdd();
  });
  $("add-file").addEventListener("change", () => takeFile($("add-file").files[0]));
  $("keys-on").checked = wantsKeys();
  $("keys-on").addEventListener("change", () => { try { localStorage.setItem("fk.keys", $("keys-on").checked ? "on" : "off"); } catch { /* counts until the page is closed */ } });

  // Links and lists that are pasted or dropped anywhere.
  document.addEventListener("paste", (event) => {
    if (event.target.matches?.("input, textarea") || document.querySelector("dialog[open]") || !store.isLive) return;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const file = event.clipboardData?.files[0];
    if (file) takeFile(file);
    else if (text.trim()) openAdd(text.trim());
  });
  let depth = 0;
  const isUseful = (event) => event.dataTransfer && [...event.dataTransfer.types].some((type) => type === "Files" || type.startsWith("text/"));
  document.addEventListener("dragenter", (event) => { if (isUseful(event)) { depth += 1; $("drop").hidden = false; } });
  document.addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); $("drop").hidden = depth === 0; });
  document.addEventListener("dragover", (event) => { if (isUseful(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    depth = 0;
    $("drop").hidden = true;
    if (event.target.matches?.("input, textarea") && !event.dataTransfer.files.length) return;
    event.preventDefault();
    if (!store.isLive) return;
    const file = event.dataTransfer.files[0];
    if (file) return takeFile(file);
    const text = event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain");
    if (text.trim()) openAdd(text.split(/\r?\n/).filter((line) => !line.startsWith("#")).join("\n").trim());
  });
  document.addEventListener("visibilitychange", () => { subscribe(); if (!document.hidden) refreshSoon(0); });
  addEventListener("online", () => { if (!store.isLive) server.open(); });
  setInterval(everySecond, 1000);
  try { server.secret = sessionStorage.getItem("fk.secret"); } catch { /* then it is asked for */ }
  showRates();
  server.open();
}

start();
