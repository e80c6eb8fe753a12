import FKCore
import FKMiddleware

/// `fk barrel export`: prints the members of a barrel as a list.
struct BarrelExport {
    let view: BarrelView
    let context: CommandContext

    /// Prints the list. Members that the format cannot hold are left out and named.
    ///
    /// - Returns: the exit status: failed if a member was left out.
    func write(as format: BarrelExportOptions.Format) -> Int32 {
        switch format {
        case .urls:
            for record in view.records { context.output.writeLine(record.task.url) }
            return ExitStatus.done
        case .json:
            JSONOutput(context.output).array(view.records) { TaskDocument.json($0, isExport: true) }
            return ExitStatus.done
        case .aria2: return writeAria2()
        case .metalink: return write(.metalink, needsSHA256: true)
        case .sha256sums: return write(.sha256sums, needsSHA256: true)
        case .lock: return write(.lock, needsSHA256: true)
        }
    }

    private func write(_ output: Manifest.Output, needsSHA256: Bool) -> Int32 {
        var facts = Manifest.Facts()
        facts.barrel = view.name
        facts.origin = view.options.origin
        facts.commit = view.options.commit
        var list = RecordManifest(
            StoreReader(view.workPath), view.records.map(\.id), as: output, facts, below: view.options.directory,
            needsSHA256: needsSHA256)
        while let part = list.next() { context.output.write(String(decoding: part, as: UTF8.self)) }
        return leftOut(list.leftOut.map(\.reason))
    }

    private func writeAria2() -> Int32 {
        var refused: [String] = []
        for record in view.records {
            let task = record.task
            let texts = [task.fileName, task.directory].compactMap(\.self)
            // aria2 trims a value and ends it at a line end.
            guard
                texts.allSatisfy({
                    $0.trimmedForAria2.isExactly($0) && !$0.utf8.contains(0x0a) && !$0.utf8.contains(0x0d)
                })
            else {
                let shown = Escaping.visible(task.fileName ?? task.url)
                refused.append("'\(shown)' is left out: an aria2 list cannot hold its name or folder")
                continue
            }
            context.output.writeLine(([task.url] + task.mirrors).joined(separator: "\t"))
            if let folder = task.directory { context.output.writeLine("  dir=\(folder)") }
            if let name = task.fileName { context.output.writeLine("  out=\(name)") }
            if task.hasOptions, let sum = task.options.checksum, sum.algorithm != .gitBlob {
                context.output.writeLine("  checksum=\(sum)")
            }
        }
        return leftOut(refused)
    }

    private func leftOut(_ reasons: [String]) -> Int32 {
        for reason in reasons.prefix(ListInput.maxShown) { context.errors.writeLine("fk: \(reason)") }
        if reasons.count > ListInput.maxShown {
            context.errors.writeLine("fk: and \(reasons.count - ListInput.maxShown) more")
        }
        return reasons.isEmpty ? ExitStatus.done : ExitStatus.taskFailed
    }
}

extension String {
    fileprivate var trimmedForAria2: String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let start = utf8.firstIndex(where: { !isBlank($0) }), let end = utf8.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[start...end])
    }
}
