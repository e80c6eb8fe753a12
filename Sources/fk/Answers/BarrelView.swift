import FKCore
import FKMiddleware

/// A barrel with the sums over its members, as they are on disk.
struct BarrelView {
    let name: String
    let options: BarrelOptions
    /// The number of members with a record.
    private(set) var total = 0
    private(set) var complete = 0
    private(set) var failed = 0
    private(set) var received: Int64 = 0
    private var known: Int64?
    private var unknownLengths = 0

    /// Reads a barrel and the records of its members.
    ///
    /// - Parameters:
    ///   - problem: called for each member whose info file cannot be read.
    ///   - seen: called for each record, in order.
    /// - Returns: the sums, and the members.
    static func read(
        _ reader: StoreReader, _ name: String, problem: @escaping (DownloadError) -> Void,
        seen: (TaskRecord) -> Void = { _ in }
    ) throws -> (BarrelView, RecordList) {
        let (barrel, ids) = try reader.barrelIDs(name)
        var view = BarrelView(name: name, options: barrel.options)
        let records = RecordList(reader, inOrder: ids, problem: problem) { record in
            view.add(record)
            seen(record)
        }
        return (view, records)
    }

    private init(name: String, options: BarrelOptions) {
        self.name = name
        self.options = options
    }

    init(
        _ reader: StoreReader, _ name: String, problem: @escaping (DownloadError) -> Void = { _ in }
    ) throws {
        self = try Self.read(reader, name, problem: problem).0
    }

    private mutating func add(_ record: TaskRecord) {
        total += 1
        if record.state == .complete { complete += 1 }
        if record.state == .error { failed += 1 }
        received &+= record.received
        if let expected = record.expected { known = (known ?? 0) &+ expected }
        if record.expected == nil, record.state != .complete { unknownLengths += 1 }
    }

    /// The sum of the known lengths in bytes; nil while no length is known.
    var expected: Int64? { known }

    /// False while the length of any member is unknown. `expected` is then a lower bound.
    var isExpectedKnown: Bool { total > 0 && unknownLengths == 0 }

    /// The received and expected bytes for display.
    ///
    /// - Parameter mark: precedes a lower bound.
    func amount(_ mark: String) -> String {
        Formatting.amount(received, of: expected, orMore: isExpectedKnown ? nil : mark)
    }

    /// The `--json` fields, without the members.
    var document: JSON {
        .members([
            "claimedSigner": JSON(options.claimedSigner), "commit": JSON(options.commit), "complete": JSON(complete),
            "error": JSON(failed),
            "expected": JSON(expected),
            "isExpectedKnown": .bool(isExpectedKnown), "name": .string(name),
            "origin": JSON(options.origin.map(URLMasking.mask)),
            "received": .integer(received), "signedBy": JSON(options.signedBy), "total": JSON(total),
        ])
    }
}
