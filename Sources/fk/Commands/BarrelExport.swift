import FKCore
import FKManifests
import FKMiddleware

/// `fk barrel export`: prints the members of a barrel as a list.
struct BarrelExport {
    /// The values of `--format`.
    enum Format: String, Sendable, CaseIterable {
        case urls, json, aria2, metalink, sha256sums, lock
    }

    let name: String
    let options: BarrelOptions
    let reader: StoreReader
    /// The members in order.
    let ids: [TaskID]
    /// True leaves out complete members whose files are there.
    var onlyMissing = false
    let context: CommandContext

    /// The number of records that are read at once.
    private static let portion = 8_192

    /// Prints the list. Members that the format cannot hold are left out and named.
    ///
    /// - Returns: the exit status: failed if a member was left out.
    func write(as format: Format) -> Int32 {
        switch format {
        case .urls:
            var poorer = 0
            forEachPortion { records in
                context.output.write(records.reduce(into: "") { $0 += $1.address(0) + "\n" })
                poorer += records.count(where: \.saysMoreThanURL)
            }
            if poorer > 0 {
                context.warn(
                    "\(poorer.plural("member")) \(poorer == 1 ? "has" : "have") a name, a digest or mirrors, which a list of URLs does "
                        + "not: --format aria2 or lock keeps them.")
            }
            return ExitStatus.done
        case .json:
            var array = JSONOutput(context.output).beginArray()
            var withOptions = 0
            defer { warn(ofOptions: withOptions) }
            forEachPortion {
                withOptions += $0.count { $0.task.optionsBox?.value.saysHow == true }
                array.write($0) { [reader] record in
                    TaskDocument.json(record, isExport: true, pieces: reader.piecesJSON(of: record))
                }
            }
            array.end()
            return ExitStatus.done
        case .aria2: return writeAria2()
        case .metalink: return write(.metalink)
        case .sha256sums: return write(.sha256sums)
        case .lock: return write(.lock)
        }
    }

    private func warn(ofOptions count: Int) {
        guard count > 0 else { return }
        context.warn(
            "\(count.plural("member")) \(count == 1 ? "has" : "have") header fields, limits or other options, which this format does "
                + "not: --format aria2 keeps those that aria2 has.")
    }

    private func wanted(_ records: [TaskRecord]) -> [TaskRecord] {
        onlyMissing ? records.filter { $0.state != .complete || $0.hasLostFile } : records
    }

    /// A portion of the records at a time, because a million take a gigabyte.
    private func forEachPortion(_ body: ([TaskRecord]) -> Void) {
        for start in stride(from: 0, to: ids.count, by: Self.portion) {
            body(wanted(reader.records(ids[start..<min(start + Self.portion, ids.count)])))
        }
    }

    private func write(_ output: Manifest.Output) -> Int32 {
        var facts = Manifest.Facts()
        facts.barrel = name
        facts.origin = options.origin
        facts.commit = options.commit
        facts.signedBy = options.signedBy
        var wantedIDs = ids
        if onlyMissing {
            wantedIDs = []
            forEachPortion { wantedIDs += $0.map(\.id) }
        }
        var list = reader.manifest(of: wantedIDs, as: output, facts, below: options.directory)
        while let part = list.next() { context.output.write(String(decoding: part, as: UTF8.self)) }
        warn(ofOptions: list.withOptions)
        // Lists of digests leave them out.
        let unproven = output == .sha256sums ? [] : list.unproven
        let reasons = unproven.prefix(ListInput.maxShown).map {
            "'\($0)' is listed without a digest: its file is gone or cannot be read, or somebody has changed it".visible
        }
        return name(list.leftOut.map(\.reason) + reasons, of: list.leftOut.count + unproven.count)
    }

    private func writeAria2() -> Int32 {
        var refused: [String] = []
        var refusals = 0
        var withSecrets = 0
        var withOptions = 0
        forEachPortion { records in
            var text = ""
            for record in records {
                let options = record.task.options
                if options.headers?.contains(where: options.isSecret) == true { withSecrets += 1 }
                let (written, rest) = Aria2Options.written(options)
                if rest != TaskOptions() { withOptions += 1 }
                if write(record.task, written, at: record.address(0), &text) { continue }
                let shown = (record.task.fileName ?? record.task.url).visible
                refusals += 1
                if refused.count < ListInput.maxShown {
                    refused.append("'\(shown)' is left out: an aria2 list cannot hold its name or folder")
                }
            }
            context.output.write(text)
        }
        if withSecrets > 0 {
            context.warn(
                "\(withSecrets.plural("member")) \(withSecrets == 1 ? "has" : "have") header fields that may be secrets, which are left out: give "
                    + "them again with -H.")
        }
        if withOptions > 0 {
            context.warn(
                "\(withOptions.plural("member")) \(withOptions == 1 ? "has" : "have") options that aria2 does not have, which are left out: give "
                    + "them again when the list is imported.")
        }
        return name(refused, of: refusals)
    }

    /// Adds the lines of a task. Returns false if the format cannot hold them.
    private func write(
        _ task: TaskDescription, _ written: [Manifest.Option], at address: String, _ text: inout String
    ) -> Bool {
        let texts = [task.fileName, task.directory].compactMap(\.self)
        // aria2 trims a value and ends it at a line end. A name that the reader of such lists refuses would make the
        // whole list useless.
        guard task.fileName.flatMap(FileNameRules.fault(inListed:)) == nil,
            texts.allSatisfy({
                $0.trimmingBlanks.isExactly($0) && !$0.utf8.contains(0x0a) && !$0.utf8.contains(0x0d)
            })
        else { return false }
        text += ([address] + task.mirrors).joined(separator: "\t") + "\n"
        if let folder = task.directory { text += "  dir=\(folder)\n" }
        if let name = task.fileName { text += "  out=\(name)\n" }
        if let sum = task.optionsBox?.value.checksum, sum.algorithm != .gitBlob {
            text += "  checksum=\(sum)\n"
        }
        guard let options = task.optionsBox?.value else { return true }
        for field in options.headers ?? [] where !options.isSecret(field) {
            text += "  header=\(field.name): \(field.value)\n"
        }
        for option in written { text += "  \(option.name)=\(option.value)\n" }
        return true
    }

    /// Names the members that the list does not have as they are.
    ///
    /// - Parameter count: the number of all of them.
    private func name(_ reasons: [String], of count: Int) -> Int32 {
        for reason in reasons.prefix(ListInput.maxShown) { context.errors.writeLine("fk: \(reason)") }
        if count > ListInput.maxShown { context.errors.writeLine("fk: and \(count - ListInput.maxShown) more") }
        return count == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }
}

extension TaskOptions {
    /// True for a header field that no list has.
    fileprivate func isSecret(_ field: HeaderField) -> Bool {
        HeaderField.isSecret(field.name)
            || (secretHeaders ?? []).contains { $0.caseInsensitiveEquals(field.name) }
    }
}

extension TaskRecord {
    /// True if the URL alone does not make the same task.
    fileprivate var saysMoreThanURL: Bool {
        if task.optionsBox?.value.hasProof == true || !task.mirrors.isEmpty { return true }
        return task.fileName.map { !$0.isExactly(FileNameRules.name(url: address(0), head: nil)) } ?? false
    }
}
