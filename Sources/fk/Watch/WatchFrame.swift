import FKCore
import FKMiddleware
import Foundation

/// Formats the screen of `fk watch`. The same model and size always give the same lines.
///
/// ```text
/// fk watch  2 running  9 waiting  1 failed  5 complete                  12.3 MiB/s
/// Process 4711 runs the downloads. Limit 2.0 MiB/s.
/// ▁▁▂▃▅▇▇▇▆▇▇▇                                                peak 13.1 MiB/s
/// > ▸ ubuntu.iso            ━━━━━━━━━╸─────  42%   2m05s   1.2/2.9 GiB  12.3 MiB/s
///   ✗ none.bin              The server answered 404.
///   ✓ notes.pdf             complete, 19.1 MiB
/// space suspend/resume  r retry  c cancel  f forget  / filter  ? help  q quit
/// ```
struct WatchFrame {
    var size: Terminal.Size
    var usesColor: Bool
    var usesUnicode: Bool
    /// The command that starts the engine.
    var runCommand: String
    /// Nanoseconds of the clock of the model's events.
    var time: Int64
    var now: Date

    private var columns: Int { size.columns }
    private var mark: String { usesUnicode ? "…" : "~" }

    /// Exactly as many lines as the terminal has rows.
    func lines(_ model: inout WatchModel) -> [String] {
        guard size.rows > 0 else { return [] }
        model.endWaits(at: now)
        var head = [title(model)]
        if size.rows >= 8 || isWarning(model) { head.append(status(model)) }
        if size.rows >= 14 { head.append(graph(model)) }
        let last = bottom(&model)
        head = Array(head.prefix(max(0, size.rows - 1)))
        let room = size.rows - head.count - 1
        model.firstRow = head.count
        var body = body(&model, rows: room)
        while body.count < room { body.append("") }
        return (head + body.prefix(room) + [last]).map(fitted)
    }

    /// The line; cut if it is too wide, as on very narrow terminals.
    private func fitted(_ line: String) -> String {
        let plain = Style.removed(from: line)
        return Columns.width(of: plain) <= columns ? line : Columns.fit(plain, to: columns, mark: mark)
    }

    // MARK: Head and bottom

    private func title(_ model: WatchModel) -> String {
        let rate =
            model.watched.rates.isEmpty || model.watched.owner == .some(nil)
            ? "" : Formatting.rate(model.watched.meters.rate ?? 0)
        let words: [(DownloadState, String)] = [
            (.action, "running"), (.idle, "waiting"), (.error, "failed"), (.suspend, "suspended"),
            (.cancel, "cancelled"), (.complete, "complete"),
        ]
        var parts = columns >= 60 ? ["fk watch"] : []
        // In front of the counts, because a narrow title is cut at its end.
        if !model.filter.isEmpty { parts.append("/\(model.filter.visible)") }
        for (state, word) in words {
            let count = model.watched.counts[state] ?? 0
            if count > 0 { parts.append("\(count) \(word)") }
        }
        if let barrel = model.barrel { parts.append("barrel \(barrel.visible)") }
        if !model.marked.isEmpty { parts.append("\(model.marked.count) marked") }
        if model.sorting != .state { parts.append("by \(model.sorting.rawValue)") }
        let left = Self.whole(parts, to: max(1, columns - Columns.width(of: rate) - 2), mark: mark)
        let padded = Columns.pad(left, to: columns - Columns.width(of: rate)) + rate
        return Style.bold(Columns.fit(padded, to: columns, mark: mark), usesColor)
    }

    /// The first parts that fit whole, and a mark if some are left out.
    private static func whole(_ parts: [String], to room: Int, mark: String) -> String {
        let text = parts.joined(separator: "  ")
        guard Columns.width(of: text) > room, let first = parts.first else { return text }
        var kept = Columns.clip(first, to: room, mark: mark)
        for part in parts.dropFirst() {
            guard Columns.width(of: kept) + Columns.width(of: part) + 4 <= room else { break }
            kept += "  \(part)"
        }
        return Columns.width(of: kept) + 2 <= room ? "\(kept) \(mark)" : kept
    }

    private func isWarning(_ model: WatchModel) -> Bool {
        model.watched.owner == .some(nil) || model.watched.silentEngine != nil
    }

    private func status(_ model: WatchModel) -> String {
        if let silent = model.watched.silentEngine {
            return Style.yellow(Columns.clip(silent.visible, to: columns, mark: mark), usesColor)
        }
        guard let owner = model.watched.owner else { return "" }
        guard let pid = owner else {
            let text = "No process runs the downloads. Start them with: \(runCommand), or x"
            return Style.yellow(Columns.clip(text.visible, to: columns, mark: mark), usesColor)
        }
        var text = "Process \(pid) runs the downloads."
        if let limit = model.watched.limit { text += " Limit \(Formatting.rate(Double(limit)))." }
        return Style.dim(Columns.fit(text, to: columns, mark: mark), usesColor)
    }

    private func graph(_ model: WatchModel) -> String {
        let highest = model.watched.rates.suffix(columns).max() ?? 0
        let label = highest > 0 ? "  peak \(Formatting.rate(highest))" : ""
        let room = columns - Columns.width(of: label)
        return Style.cyan(RateGraph.text(model.watched.rates, columns: room, usesUnicode: usesUnicode), usesColor)
            + Style.dim(label, usesColor)
    }

    private func bottom(_ model: inout WatchModel) -> String {
        func fit(_ text: String) -> String { Columns.clip(text.visible, to: columns, mark: mark) }
        switch model.prompt {
        case .filter(let text): return Style.bold(fit("/\(text)_"), usesColor)
        case .confirm(let verb, let ids, let name):
            let verb = verb == .forget ? "Forget" : "Cancel"
            let bytes = "\(ids.count == 1 ? "its" : "their") unfinished bytes"
            // The keys are seen on every terminal: the name gives way, then the words.
            let name = name.visible
            let least = min(12, Columns.width(of: name)) + 1
            let ends = [" and delete \(bytes)? y/n", " and delete bytes? y/n", "? y/n"]
            let end = ends.first { Columns.width(of: verb + $0) + least <= columns } ?? "? y/n"
            let shown = Columns.fit(name, to: max(1, columns - Columns.width(of: verb + end) - 1), mark: mark)
            return Style.yellow(Columns.clip("\(verb) \(shown)\(end)", to: columns, mark: mark), usesColor)
        case nil: break
        }
        if let message = model.message { return Style.yellow(fit(message), usesColor) }
        let keys =
            switch model.page {
            case .list:
                ["q quit", "? help"] + verbs(model.selected()?.state)
                    + ["/ filter", "s sort", "v mark", "Enter details", "b barrels", "+ - limit"]
            case .details: ["q quit", "Esc back"] + verbs(model.selected()?.state)
            case .barrels: ["q quit", "Esc back", "Enter members", "+ - limit of the barrel"]
            case .help: ["q quit", "up down scroll", "Esc back"]
            }
        var place = ""
        if model.page == .list, let index = model.selectedIndex() { place = "\(index + 1)/\(model.shown().count)" }
        let room = columns - (place.isEmpty ? 0 : place.count + 2)
        var text = ""
        for key in keys {
            let longer = text.isEmpty ? key : "\(text)  \(key)"
            if Columns.width(of: longer) > room { break }
            text = longer
        }
        guard !place.isEmpty, room > 0 else { return Style.dim(text, usesColor) }
        return Style.dim(Columns.pad(text, to: room + 1) + place, usesColor)
    }

    /// The keys that act on a task in this state.
    private func verbs(_ state: DownloadState?) -> [String] {
        switch state {
        case .action: ["space suspend", "c cancel", "f forget"]
        case .idle: ["space suspend", "J K move", "c cancel", "f forget"]
        case .suspend: ["space resume", "c cancel", "f forget"]
        case .error, .cancel: ["r retry", "f forget"]
        case .complete: ["f forget"]
        case .unknown, nil: []
        }
    }

    // MARK: Pages

    private func body(_ model: inout WatchModel, rows: Int) -> [String] {
        switch model.page {
        case .list: return list(&model, rows: rows)
        case .details(let id): return details(&model, id, rows: rows)
        case .barrels: return barrels(&model, rows: rows)
        case .help:
            let help = WatchModel.help.flatMap { key in
                Columns.wrap(key.meaning, to: max(8, columns - 19)).enumerated().map { index, line in
                    let left = Columns.pad(index == 0 ? key.keys : "", to: 16)
                    return Columns.fit("  \(left) \(line)", to: columns, mark: mark)
                }
            }
            model.top = max(0, min(model.top, help.count - rows))
            return Array(help.dropFirst(model.top))
        }
    }

    private func list(_ model: inout WatchModel, rows: Int) -> [String] {
        let visible = model.visible(rows: rows)
        guard !visible.isEmpty else {
            guard model.watched.isLoaded else { return ["  Reading the tasks ..."] }
            let isFiltered = !model.filter.isEmpty || model.barrel != nil
            let text =
                isFiltered ? "  No task matches. Esc clears the filter." : "  No tasks. Add some with: fk get URL"
            return [Columns.fit(text, to: columns, mark: mark)]
        }
        let infos = visible.compactMap { model.watched.tasks[$0]?.info }
        let labels = DistinctNames.labels(infos)
        let selected = model.selected()?.id
        let layout = layout(infos)
        // The same for all that wait for a slot: it stands in the first of their rows.
        let first = infos.first { $0.state == .idle && $0.wait?.reason == .slot }?.id
        return zip(infos, labels).map { info, label in
            var info = info
            if info.wait?.reason == .slot, info.id != first { info.wait = nil }
            return row(info, label, model, layout, isSelected: info.id == selected)
        }
    }

    /// The columns of the rows: two for the selection, two for the sign of the state.
    private func layout(_ infos: [DownloadInfo]) -> ProgressFrame {
        ProgressFrame(
            columns: max(1, columns - 5), rows: 1, usesColor: usesColor, usesUnicode: usesUnicode,
            nameColumns: columns >= 100 ? 32 : 20, hasConnections: infos.contains { $0.connections > 1 },
            hasAttempts: infos.contains { $0.attempts > 1 && $0.state == .action })
    }

    private func row(
        _ info: DownloadInfo, _ label: String?, _ model: WatchModel, _ layout: ProgressFrame, isSelected: Bool
    ) -> String {
        var task = TaskLine(info, label: label, meters: model.watched.meters, time: time, now: now)
        if let (text, style) = note(info, task.note) {
            task.note = text
            task.noteStyle = style
        }
        let (sign, style) = sign(info.state)
        var line = "\(style?(sign, usesColor) ?? sign) \(layout.line(task))"
        if info.state == .idle { line = Style.dim(Style.removed(from: line), usesColor) }
        let mark = model.marked.contains(info.id) ? "*" : " "
        guard isSelected else { return " \(mark)" + line }
        return Style.reverse(Columns.pad(">\(mark)" + Style.removed(from: line), to: columns - 1), true)
    }

    private func sign(_ state: DownloadState) -> (String, Style?) {
        switch state {
        case .action: (usesUnicode ? "▸" : "*", .cyan)
        case .complete: (usesUnicode ? "✓" : "+", .green)
        case .error: (usesUnicode ? "✗" : "!", .red)
        case .suspend: (usesUnicode ? "‖" : "=", .yellow)
        case .cancel: (usesUnicode ? "–" : "-", .yellow)
        case .idle, .unknown: (" ", nil)
        }
    }

    /// The text of a task that does not run; nil for a running one.
    private func note(_ info: DownloadInfo, _ wait: String?) -> (String, Style)? {
        let bytes = Formatting.amount(info.count.received, of: info.count.expected)
        switch info.state {
        case .action: return nil
        case .complete: return ("complete, \(Formatting.bytes(info.count.received))", .green)
        case .error: return (info.error?.shortText ?? "failed", .red)
        case .suspend: return ("suspended, \(bytes) kept", .yellow)
        case .cancel: return ("cancelled", .yellow)
        case .idle, .unknown:
            let text = wait ?? "waiting"
            return (info.count.received > 0 ? "\(text), \(bytes)" : text, .dim)
        }
    }

    private func details(_ model: inout WatchModel, _ id: TaskID, rows: Int) -> [String] {
        guard let info = model.watched.tasks[id]?.info else { return ["  The task is gone."] }
        let head = [row(info, nil, model, layout([info]), isSelected: false), ""]
        let room = max(0, rows - head.count)
        let lines = model.details.flatMap { Columns.fold($0, to: columns - 2, indent: 4) }
        model.top = max(0, min(model.top, lines.count - room))
        return head + lines.dropFirst(model.top).prefix(room).map { "  \($0)" }
    }

    private func barrels(_ model: inout WatchModel, rows: Int) -> [String] {
        let sums = model.barrelSums()
        guard !sums.isEmpty else { return ["  There are no barrels."] }
        model.barrelIndex = max(0, min(model.barrelIndex, sums.count - 1))
        var table = TableWriter([
            .init("BARREL", isFlexible: true), .init("FILES", alignsRight: true), .init("FAILED", alignsRight: true),
            .init("BYTES", alignsRight: true, spare: 1), .init("DONE", alignsRight: true),
            .init("RATE", alignsRight: true),
        ])
        let atLeast = Formatting.atLeast(usesUnicode: usesUnicode)
        for sum in sums {
            let done = sum.isLowerBound ? "" : Formatting.percent(sum.received, of: sum.expected)
            table.add([
                .init(sum.name), .init("\(sum.complete)/\(sum.total)"), .init("\(sum.failed)"),
                .init(Formatting.amount(sum.received, of: sum.expected, orMore: sum.isLowerBound ? atLeast : nil)),
                .init(done), .init(sum.rate >= 1 ? Formatting.rate(sum.rate) : ""),
            ])
        }
        let lines = table.lines(width: columns - 3, usesColor: usesColor, usesUnicode: usesUnicode)
        let room = max(1, rows - 1)
        let first = max(0, model.barrelIndex - room + 1)
        let shown = lines.dropFirst(1 + first).prefix(room).enumerated().map { index, line in
            let fitted = Columns.fit(Style.removed(from: line), to: columns - 3, mark: mark)
            return first + index == model.barrelIndex
                ? Style.reverse(Columns.pad("> \(fitted)", to: columns - 1), true) : "  \(fitted)"
        }
        return ["  " + Columns.fit(Style.removed(from: lines[0]), to: columns - 3, mark: mark)] + shown
    }
}
