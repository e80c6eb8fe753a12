import FKMiddleware

/// Queries over the records, and what the application writes into them.
extension Engine {
    func records(_ query: RecordQuery) throws -> RecordPage {
        try query.validate()
        let entries =
            if let name = query.barrel {
                try find(.barrel(name))
            } else if let ids = query.ids {
                try ids.compactMap { try find($0) }
            } else {
                try find(.all)
            }
        return try query.page(
            of: entries.lazy.map { entry in
                self.takeInlineHead(of: entry)
                var record = DownloadRecord(entry.record)
                record.received = entry.received
                record.bytesPerSecond = self.speedToRecord(of: entry, in: entry.record.state) ?? 0
                return record
            })
    }

    func setAttributes(_ selector: TaskSelector, _ changes: [String: String?]) throws -> Int {
        let entries = try findSome(selector)
        // All or none: what does not fit one of them changes nothing.
        let all = try entries.map { try AttributeRules.applying(changes, to: $0.record.task.attributes) }
        for (entry, attributes) in zip(entries, all) {
            entry.record.task.attributes = attributes
            try save(entry)
        }
        return entries.count
    }

    /// A task that is asked for again keeps its pairs and gets the new ones.
    func addAttributes(of description: TaskDescription, to entry: TaskEntry) throws {
        let attributes = try AttributeRules.applying(description.attributes, to: entry.record.task.attributes)
        guard attributes != entry.record.task.attributes else { return }
        entry.record.task.attributes = attributes
        try save(entry)
    }

    func markUsed(_ selector: TaskSelector) throws -> Int {
        let entries = try findSome(selector)
        for entry in entries {
            entry.record.lastUsed = clock.date
            try save(entry)
        }
        return entries.count
    }

    private func findSome(_ selector: TaskSelector) throws -> [TaskEntry] {
        try checkOpen()
        let entries = try find(selector)
        guard !entries.isEmpty || selector == .all else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        return entries
    }
}
