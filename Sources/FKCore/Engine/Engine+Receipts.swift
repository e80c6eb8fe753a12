import FKMiddleware

extension Engine {
    package func receipts(_ selector: TaskSelector) throws -> [Receipt] {
        try book.find(selector).map { entry in
            entry.refresh()
            var receipt = Receipt(entry.record)
            receipt.written = entry.received
            receipt.bytesPerSecond = Double(entry.recordedSpeed(in: entry.record.state, now: clock.now) ?? 0)
            return receipt
        }
    }
}
