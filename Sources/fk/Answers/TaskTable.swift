import FKCore
import FKMiddleware

/// The table of `list`, `barrel show` and `watch`. It reads the records once for the widths of its columns and once more for
/// its lines, because the lines of a million tasks take 100 MB. A finished file that is gone or has another length is shown as gone.
struct TaskTable {
    private let context: CommandContext
    private var table = TableWriter([
        .init("ID", spare: 1), .init("STATE"), .init("BYTES", alignsRight: true, spare: 2),
        .init("DONE", alignsRight: true), .init("NAME", isFlexible: true),
        .init("REASON", isFlexible: true, isSentence: true),
    ])
    /// True if a task has failed: then there is a column for the reasons.
    private var hasReasons = false
    /// The names of a barrel's members; nil shows the last part of each path.
    private let paths: BarrelPaths?

    init(_ context: CommandContext, paths: BarrelPaths? = nil) {
        self.context = context
        self.paths = paths
    }

    /// Makes room for a task.
    mutating func measure(_ record: TaskRecord) {
        if record.state == .error { hasReasons = true }
        table.measure(cells(record))
    }

    /// Writes the table of tasks that were all measured.
    func write(_ records: RecordList) {
        var table = table
        if !hasReasons { table.dropLastColumn() }
        let layout = table.layout(context)
        context.output.writeLine(layout.headings)
        let count = hasReasons ? 6 : 5
        records.forEachPortion { portion in
            let blocks = stride(from: 0, to: portion.count, by: 512).map { portion[$0..<min($0 + 512, portion.count)] }
            let texts = blocks.mappedInParallel { block in
                block.reduce(into: "") { $0 += layout.line(Array(cells($1).prefix(count))) + "\n" }
            }
            for text in texts { context.output.write(text) }
        }
    }

    private func cells(_ record: TaskRecord) -> [TableWriter.Cell] {
        let isGone = record.hasLostFile
        let received = isGone ? 0 : record.received
        let style: Style? =
            switch record.state {
            case .complete where isGone: .yellow
            case .complete: .green
            case .error: .red
            case .action: .cyan
            case .suspend, .cancel: .yellow
            default: nil
            }
        let reason = record.state == .error ? record.error?.shortText ?? "" : ""
        return [
            .init(record.id.short), .init(isGone ? "gone" : record.state.shown, style),
            .init(Formatting.amount(received, of: record.expected)),
            .init(Formatting.percent(received, of: record.expected)),
            .init(paths?.name(of: record) ?? DownloadInfo(record).shownName),
            .init(reason),
        ]
    }
}

extension TableWriter {
    func write(_ context: CommandContext) {
        let layout = layout(context)
        context.output.writeLine(layout.headings)
        for row in rows { context.output.writeLine(layout.line(row)) }
    }

    fileprivate func layout(_ context: CommandContext) -> Layout {
        let terminal = context.outputTerminal(context.global.color)
        return layout(
            width: terminal.isTerminal ? terminal.size.columns : nil, usesColor: terminal.usesColor,
            usesUnicode: terminal.usesUnicode)
    }
}
