import FKMiddleware

/// The beginning of a large record: its id and its description, which may have 100,000 mirrors and seldom changes. An update of
/// a slot that has it writes only the rest.
final class RecordHead: Sendable {
    /// The minimum length in bytes. A shorter one is written with the rest.
    static let minLength = 16 << 10

    let task: TaskDescription
    /// The length of its text in bytes.
    let count: Int
    /// The CRC-32C of its text.
    let checksum: UInt32
    /// The slots that have it: bit 0 and bit 1.
    let slots: UInt8

    private init(_ task: TaskDescription, count: Int, checksum: UInt32, slots: UInt8) {
        self.task = task
        self.count = count
        self.checksum = checksum
        self.slots = slots
    }

    /// The head after a write of a whole record; nil for a short one.
    ///
    /// - Parameters:
    ///   - text: the whole record.
    ///   - known: the head in the other slot; nil without one.
    static func written(
        _ task: TaskDescription, _ text: borrowing JSONText, generation: UInt64, known: RecordHead?
    ) -> RecordHead? {
        let count = text.mark
        guard count >= minLength else { return nil }
        let slot: UInt8 = 1 << (generation & 1)
        if let known, known.task == task {
            return RecordHead(task, count: count, checksum: known.checksum, slots: known.slots | slot)
        }
        let checksum = text.withText { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return RecordHead(task, count: count, checksum: checksum, slots: slot)
    }

    /// True if the slot of that generation has this head.
    func isThere(for generation: UInt64) -> Bool { slots & 1 << (generation & 1) != 0 }
}
