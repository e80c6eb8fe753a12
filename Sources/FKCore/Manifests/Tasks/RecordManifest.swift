import FKCore
import FKEngine
import FKMiddleware
import Foundation

/// Writes the tasks of a list of ids as a `Manifest.Output`, a portion at a time.
///
/// It reads each record twice: once for the folder that all names are relative to, and once in the order of the names. Only
/// ids and names are held.
package struct RecordManifest {
    private let reader: StoreReader
    private let needsSHA256: Bool
    private var writer: ManifestWriter
    /// The tasks that are not written yet, by name in reverse order.
    private var rest: [(id: TaskID, name: String)] = []
    /// True if `next` has nothing more to return.
    package var isAtEnd: Bool { hasEnded }
    private var hasEnded = false

    /// The names of finished files without a digest: they are gone or were changed, so none could be computed.
    package private(set) var unproven: [String] = []
    /// The number of records that are read at once.
    private static let portion = 1_024

    /// - Parameters:
    ///   - ids: unknown tasks are left out.
    ///   - folder: the folder that the names of the list are relative to, unless a task has its file elsewhere: then it
    ///     is the deepest folder of all files. The default is nil: always the deepest folder.
    ///   - needsSHA256: true reads finished files whose SHA-256 is not known, on all processors. The default is true.
    package init(
        _ reader: StoreReader, _ ids: [TaskID], as output: Manifest.Output, _ facts: Manifest.Facts = .init(),
        below folder: String? = nil, needsSHA256: Bool = true
    ) {
        self.reader = reader
        self.needsSHA256 = needsSHA256
        writer = ManifestWriter(output, facts)
        var base = CommonFolder(folder)
        for start in stride(from: 0, to: ids.count, by: Self.portion) {
            for record in reader.records(ids[start..<min(start + Self.portion, ids.count)]) {
                let place = CommonFolder.place(of: record)
                base.add(place)
                rest.append((record.id, place))
            }
        }
        for index in rest.indices { rest[index].name = base.name(of: rest[index].name) }
        rest.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        rest.reverse()
    }

    /// The entries that the format cannot represent, and the reasons.
    package var leftOut: [ManifestError] { writer.leftOut }

    /// The number of entries so far whose tasks have options that no list of files has (`TaskOptions.saysHow`).
    package private(set) var withOptions = 0

    /// The next part of the text in UTF-8; nil at the end.
    package mutating func next() -> [UInt8]? {
        if hasEnded { return nil }
        let portion = Array(rest.suffix(Self.portion).reversed())
        rest.removeLast(portion.count)
        let records = reader.records(portion.map(\.id))
        let names = Dictionary(portion.map { ($0.id, $0.name) }) { first, _ in first }
        let (reader, needsSHA256) = (reader, needsSHA256)
        let entries = records.mappedInParallel { record in
            var entry = Self.entry(record, names[record.id] ?? "", needsSHA256: needsSHA256)
            entry.pieces = reader.pieceDigests(of: record).flatMap(Manifest.Pieces.init).map { [$0] } ?? []
            return entry
        }
        for (record, entry) in zip(records, entries) {
            if record.task.optionsBox?.value.saysHow == true { withOptions += 1 }
            if needsSHA256, record.state == .complete, entry.digests.isEmpty { unproven.append(entry.name ?? "") }
            writer.add(entry)
        }
        if rest.isEmpty {
            writer.finish()
            hasEnded = true
        }
        return writer.drain()
    }

    private static func entry(_ record: TaskRecord, _ name: String, needsSHA256: Bool) -> Manifest.Entry {
        let urls = [record.address(0)] + record.task.mirrors
        let sources = urls.enumerated().map { Manifest.Source($0.element, priority: min($0.offset + 1, 999_999)) }
        var entry = Manifest.Entry(name: name, sources: sources)
        entry.size = record.state == .complete ? record.expected : record.task.options.size ?? record.expected
        for checksum in [record.task.optionsBox?.value.checksum, record.validator?.digest] {
            if let checksum, checksum.algorithm.isDigest { _ = entry.digests.add(checksum) }
        }
        if needsSHA256, let digest = sha256(of: record, entry) { _ = entry.digests.add(digest) }
        if let text = record.task.attributes[Manifest.FileFacts.SignatureKey.text] {
            let type = record.task.attributes[Manifest.FileFacts.SignatureKey.type]
            entry.signature = Manifest.Signature(mediaType: type ?? "application/pgp-signature", text: text)
        }
        return entry
    }

    private static func sha256(of record: TaskRecord, _ entry: Manifest.Entry) -> Checksum? {
        guard !entry.digests.contains(where: { $0.algorithm == .sha256 }) else { return nil }
        return record.fileSHA256.flatMap { Checksum(listed: .sha256, hex: $0) }
    }
}

extension TaskRecord {
    /// The SHA-256 of the finished file as hexadecimal digits. It reads the file, and returns nil if the file is not as the task
    /// left it, or cannot be read.
    package var fileSHA256: String? {
        guard state == .complete, let path, isForeign == true || claim(path) == .ours else { return nil }
        return try? Digester.hex(ofFile: URL(fileURLWithPath: path), .sha256)
    }
}

extension StoreReader {
    /// The list of these tasks, to be read a portion at a time; unknown tasks are left out.
    ///
    /// - Parameter folder: the folder that the names of the list are relative to, unless a task has its file elsewhere.
    package func manifest(
        of ids: [TaskID], as output: Manifest.Output, _ facts: Manifest.Facts, below folder: String?
    ) -> RecordManifest { RecordManifest(self, ids, as: output, facts, below: folder) }
}
