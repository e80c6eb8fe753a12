import FKMiddleware
import Foundation

/// Makes a list of the records of tasks, as `Manifest.written` writes it.
package enum RecordManifest {
    /// The list of some tasks.
    ///
    /// - Parameters:
    ///   - folder: the folder that the names of the list are relative to, unless a task has its file elsewhere: then it
    ///     is the deepest folder of all files. The default is nil: always the deepest folder.
    ///   - needsSHA256: true reads finished files whose SHA-256 is not known, on all processors.
    package static func make(_ records: [TaskRecord], below folder: String? = nil, needsSHA256: Bool) -> Manifest {
        let places = records.map(place)
        let base = base(of: places, preferring: folder)
        let entries = Parallel.map(Array(zip(records, places))) { record, place in
            entry(record, Self.name(of: place, below: base), needsSHA256: needsSHA256)
        }
        return Manifest(form: .lock, entries: entries)
    }

    /// The path of the finished file, or the path that it will have as far as that is known.
    private static func place(_ record: TaskRecord) -> String {
        if record.state == .complete, let path = record.path { return path }
        let name =
            record.task.fileName ?? FileNameRules.name(url: record.task.url, head: record.response)
        return (record.task.directory ?? "/").path(of: name)
    }

    private static func base(of places: [String], preferring folder: String?) -> String {
        if let folder, places.allSatisfy({ isBelow($0, folder) }) { return folder }
        var base = places.first?.folderPart ?? "/"
        for place in places { while !isBelow(place, base) { base = base.folderPart } }
        return base
    }

    private static func isBelow(_ path: String, _ folder: String) -> Bool {
        path.utf8.starts(with: (folder == "/" ? "/" : folder + "/").utf8)
    }

    private static func name(of place: String, below base: String) -> String {
        String(Substring(place.utf8.dropFirst(base == "/" ? 1 : base.utf8.count + 1)))
    }

    private static func entry(_ record: TaskRecord, _ name: String, needsSHA256: Bool) -> Manifest.Entry {
        let urls = [record.task.url] + record.task.mirrors
        let sources = urls.enumerated().map { Manifest.Source($0.element, priority: min($0.offset + 1, 999_999)) }
        var entry = Manifest.Entry(name: name, sources: sources)
        entry.size = record.state == .complete ? record.expected : record.task.options.size ?? record.expected
        for checksum in [record.task.hasOptions ? record.task.options.checksum : nil, record.validator?.digest] {
            guard let checksum, let algorithm = ManifestDigest.Algorithm(rawValue: checksum.algorithm.rawValue),
                let digest = ManifestDigest(algorithm, hex: checksum.hex)
            else { continue }
            _ = entry.digests.add(digest)
        }
        if needsSHA256, let digest = sha256(of: record, entry) { _ = entry.digests.add(digest) }
        if let text = record.task.attributes[Manifest.Entry.SignatureKey.text] {
            let type = record.task.attributes[Manifest.Entry.SignatureKey.type]
            entry.signature = Manifest.Signature(mediaType: type ?? "application/pgp-signature", text: text)
        }
        return entry
    }

    /// The SHA-256 of a finished file that is as the task left it; nil if it is known already or cannot be read.
    private static func sha256(of record: TaskRecord, _ entry: Manifest.Entry) -> ManifestDigest? {
        guard !entry.digests.contains(where: { $0.algorithm == .sha256 }), record.state == .complete,
            let path = record.path, record.isForeign == true || record.owns(path),
            let hex = try? Digester.hex(ofFile: URL(fileURLWithPath: path), .sha256)
        else { return nil }
        return ManifestDigest(.sha256, hex: hex)
    }
}
