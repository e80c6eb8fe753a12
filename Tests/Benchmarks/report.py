"""The rows as a table, as JSON, as a page and as a bar chart.

    report.py FOLDER    writes the pages anew from the results.json of that folder
"""

import json
import platform
import re
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def verdicts(row):
    """(text, kept, reason) for each goal of the row; the reason is empty for a goal that is reached."""
    for goal in row.goals:
        own = goal.what.split(" of ")[1] if " of " in goal.what else next(iter(row.values))
        value = row.values[own]
        if not goal.of:
            kept = value <= goal.most
            yield f"at most {goal.most:g} {row.unit}", kept, "" if kept else goal.because
            continue
        peers = {name: each for name, each in row.values.items() if not name.startswith("fk")}
        if not peers:
            continue
        # Another way of fk's own may be the one to compare with.
        if goal.of in row.values:
            peers[goal.of] = row.values[goal.of]
        if goal.of == "best":
            peer = min(peers, key=peers.get) if peers else None
        else:
            peer = goal.of if goal.of in peers else None
        if peer is None:
            yield f"{goal.of} was not measured", True, ""
        else:
            ratio = value / max(peers[peer], 1e-9)
            kept = ratio <= goal.most
            yield f"{own} {ratio:.2f} x {peer}, at most {goal.most:g}", kept, "" if kept else goal.because


def worse_than_before(rows, suffix, most=1.05):
    """A line for each value that is more than `most` times that of the build before."""
    lines = []
    for row in rows:
        for name, value in row.values.items():
            old = row.values.get(name + suffix)
            if old and value > old * most:
                lines.append(f"WORSE  {row.name} [{row.unit}]: {name} {value:g}, before {old:g}: {value / old:.2f} x")
    return lines


def table_lines(row):
    values = "  ".join(f"{name} {value:g}" for name, value in row.values.items())
    lines = [f"{row.name} [{row.unit}]", f"    {values}"]
    for text, kept, reason in verdicts(row):
        lines.append(f"    {text}: {verdict(kept)}{'. ' + reason if reason else ''}")
    return lines


def verdict(kept):
    return "reached" if kept else "not reached"


def machine():
    def first(words):
        try:
            return subprocess.run(words, capture_output=True, text=True).stdout.strip().split("\n")[0]
        except OSError:
            return "not there"

    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "system": platform.platform(), "processor": model[0] if model else platform.machine(), "cores": len(model),
        "programs": {name: first([name, "--version"]) for name in ("curl", "aria2c", "wget2", "axel", "wget", "rclone", "aria2-next")},
    }


def write_json(path, rows, date, fk, keeps=False):
    """Writes the rows. With `keeps`, rows of an earlier run that were not measured again stay, with their date."""
    new = {
        (row.name, row.unit): {
            "work": row.name, "unit": row.unit, "medians": row.values, **({"spread": row.spread} if row.spread else {}),
            "goals": [{"goal": text, "kept": kept, **({"because": reason} if reason else {})}
                      for text, kept, reason in verdicts(row)]} for row in rows}
    old = json.loads(path.read_text()) if keeps and path.exists() else {"date": date, "rows": []}
    merged = []
    for row in old["rows"]:
        again = new.pop((row["work"], row["unit"]), None)
        if not again and row.get("date", old["date"]) != date:
            row = {**row, "date": row.get("date", old["date"])}
        merged.append(again or row)
    document = {"date": date, "fk": fk, "machine": machine(), "rows": merged + list(new.values())}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def spread(row, name):
    """The ends of fk's own values, where they differ by more than a tenth: then the median alone says little."""
    low, high = row.get("spread", {}).get(name, (0, 0))
    return f" ({low:g} to {high:g})" if name.startswith("fk") and high > low * 1.1 else ""


def is_shown(row):
    """True for a row of the page: a comparison in seconds, or a goal that compares or is not reached."""
    if len(row["medians"]) > 1:
        return bool(row["goals"]) or row["unit"] in ("s", "ms")
    return any(not goal["kept"] for goal in row["goals"])


def write_markdown(folder):
    """The results of the folder's results.json as a page of the documents."""
    document = json.loads((folder / "results.json").read_text())
    about, measured = document["machine"], document["fk"].removeprefix("fk ")
    current = re.search(r'static let text = "(.*)"', (ROOT / "Sources/FKCore/Model/Version.swift").read_text())[1]
    lines = [
        "# Benchmarks", "",
        f"`make bench` wrote this page on {document['date']}. It measured fk {measured} on {about['processor']}, {about['cores']} cores, "
        f"{about['system']}.",
    ]
    if measured != current:
        lines += ["", f"The current version is {current}; these results are of the earlier version {measured}."]
    lines += [
        "", "Values are medians, in brackets the least and the largest of fk where they differ by more than a tenth; the programs take turns. A goal is a maximum, or a maximum ratio to another program. "
        "[results.json](results.json) has processor time and memory of all programs, and the works of fk alone. "
        "[Performance](../Performance.md) says where the time goes.", "", "![bars](results.svg)", "",
        "| work | unit | fk and other programs | goal |", "| --- | --- | --- | --- |"]
    reasons = {}
    alone = [goal for row in document["rows"] if not is_shown(row) for goal in row["goals"]]
    for row in filter(is_shown, document["rows"]):
        values = ", ".join(f"{name} {value:g}{spread(row, name)}" for name, value in row["medians"].items())
        goals = "; ".join(f"{goal['goal']}: {verdict(goal['kept'])}" for goal in row["goals"])
        when = f" (on {row['date']})" if "date" in row else ""
        lines.append(f"| {row['work']}{when} | {row['unit']} | {values} | {goals} |")
        for goal in row["goals"]:
            if not goal["kept"]:
                works = reasons.setdefault(goal.get("because", "The reason is not known."), [])
                works += [row["work"]] if row["work"] not in works else []
    lines += ["", f"The {len(alone)} goals of works without another program are reached; results.json has them."]
    if reasons:
        lines += ["", "## Goals that are not reached", ""]
        lines += [f"- {'; '.join(works)}: {reason}" for reason, works in reasons.items()]
    lines += ["", "Programs: " + ", ".join(re.split(r" [(-]|$", text.rstrip("."))[0] for text in about["programs"].values() if text) + "."]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


#: The measured rows of the README's table, in its order: the work, and the programs of its columns.
FRONT = [
    ("1024 MiB over loopback, plain HTTP", ("fk", "aria2", "curl", "wget2")),
    ("1024 MiB over loopback, TLS", ("fk", "aria2", "curl", "wget2")),
    ("100 MiB, 10 MiB/s a connection", ("fk -x16", "aria2 -x16", "curl", None)),
    ("50,000 x 1 KiB, 16 at once, on a disk", ("fk", "aria2", "curl", "wget2")),
    ("SIGKILL at 120 MiB/s: sent again after each kill, without the bytes in the sockets", ("fk", "aria2", None, None)),
]


def write_front(folder, page, note):
    """Writes the measured rows of a README's table anew. `note` is the form of a cell whose program has an option.

    The first row of figures follows the line of dashes; its first cell stays."""
    document = json.loads((folder / "results.json").read_text())
    medians = {(row["work"], row["unit"]): row["medians"] for row in document["rows"]}
    lines = page.read_text().split("\n")
    first = next(number for number, line in enumerate(lines) if line.startswith("| | fk |")) + 2
    for number, (work, programs) in enumerate(FRONT, first):
        values = medians.get((work, "s")) or medians.get((work, "MB"))
        if values is None:
            continue
        best = min(values[name] for name in programs if name in values)
        cells = [
            cell(values[name], name, medians, work, note, is_best=values[name] == best) if name in values else ""
            for name in programs]
        label = lines[number].split(" | ")[0].removeprefix("| ")
        lines[number] = "| " + " | ".join([label, *cells]) + " | |"
        lines[number] = re.sub(r"\|  (?=\|)", "| ", lines[number])
    text = re.sub(r"\bfk \d+\.\d+\.\d+", document["fk"], "\n".join(lines), count=1)
    page.write_text(text)


def cell(value, name, medians, work, note, is_best):
    if (work, "s") not in medians:
        text = f"{value:.0f} MB" if value else "0"
    else:
        text = f"{value:.2f} s" if value < 2 else f"{value:.1f} s"
        if work.startswith("50,000"):
            text += f", {medians[work, 'MB'][name]:.0f} MB"
    text = f"**{text}**" if is_best else text
    return text + note.format(name.split()[1]) if " -" in name else text


def write_svg(folder, title):
    """One group of bars for each work of results.json measured in seconds or milliseconds, drawn to the group's own scale."""
    rows = json.loads((folder / "results.json").read_text())["rows"]
    rows = [row for row in rows if row["unit"] in ("s", "ms") and len(row["medians"]) > 1]
    parts, y, width = [], 40, 900
    for row in rows:
        parts.append(f'<text x="10" y="{y + 12}" font-weight="bold">{escape(row["work"])} [{row["unit"]}]</text>')
        y += 20
        longest = max(row["medians"].values()) or 1
        for name, value in row["medians"].items():
            color = "#d9480f" if name.startswith("fk") else "#8aa0b5"
            length = max(1, value / longest * (width - 260))
            parts.append(f'<text x="90" y="{y + 11}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect x="98" y="{y}" width="{length:.1f}" height="13" fill="{color}"/>')
            parts.append(f'<text x="{104 + length:.1f}" y="{y + 11}">{value:g}</text>')
            y += 17
        y += 12
    body = "\n".join(parts)
    (folder / "results.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 10}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>\n{body}\n</svg>\n')


def write_pages(folder):
    """The page of the documents, and the tables of both READMEs."""
    write_markdown(folder)
    write_front(folder, ROOT / "README.md", " with `{}`")
    write_front(folder, ROOT / "README.zh.md", "（`{}`）")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
