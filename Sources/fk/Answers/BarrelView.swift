import FKCore
import FKMiddleware

/// A barrel with the sums over its members, as they are on disk.
struct BarrelView {
    let name: String
    let options: BarrelOptions
    /// The sums over the members with a record. A finished file that is gone or has another length has no bytes.
    private(set) var totals = TaskTotals()
    /// The number of complete members whose files are gone or have another length.
    private(set) var gone = 0
    /// The number of complete members whose files are there.
    var complete: Int { totals.count(.complete) - gone }

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
            var share = TaskTotals.Share(record)
            if record.hasLostFile {
                view.gone += 1
                share.received = 0
            }
            view.totals.add(share)
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

    /// The received and expected bytes for display; `mark` precedes a lower bound.
    func amount(_ mark: String) -> String {
        Formatting.amount(totals.received, of: totals.bytes.expected, orMore: totals.isExpectedKnown ? nil : mark)
    }

    /// The `--json` fields, without the members.
    var document: JSON {
        .members([
            "claimedSigner": JSON(options.claimedSigner), "commit": JSON(options.commit),
            "complete": JSON(complete), "error": JSON(totals.count(.error)),
            "expected": JSON(totals.bytes.expected), "gone": JSON(gone),
            "isExpectedKnown": .bool(totals.isExpectedKnown), "name": .string(name),
            "origin": JSON(options.origin.map(\.masked)), "received": .integer(totals.received),
            "signedBy": JSON(options.signedBy), "total": JSON(totals.count),
        ])
    }
}
