import FKMiddleware

/// The fault of an entry that is left out.
package struct EntryFault: Error {
    /// The reason, without a final full stop.
    package let reason: String
    package init(_ reason: String) { self.reason = reason }
}

/// Reads the members common to JSON lists and lock files.
enum EntryFields {
    /// Checks a name relative to the folder and returns it.
    static func name(_ text: String) throws(EntryFault) -> String {
        if let fault = text.listedPathFault { throw EntryFault("'\(text)': \(fault)") }
        return text.plainListedPath
    }

    /// Reads `url` and `mirrors`: texts, or objects with `url`, `priority` and `location`.
    static func sources(_ object: JSONReader.Object) throws(EntryFault) -> [Manifest.Source] {
        var sources: [Manifest.Source] = []
        let values = (object["url"].map { [$0] } ?? []) + (object["mirrors"]?.array ?? [])
        for value in values {
            guard let url = value.string ?? value.object?["url"]?.string else {
                throw EntryFault("an address is no text")
            }
            try checkURL(url)
            var source = Manifest.Source(url)
            if let number = value.object?["priority"]?.integer {
                source.priority = min(max(Int(clamping: number), 1), Manifest.Source.lowestPriority)
            }
            source.location = value.object?["location"]?.string
            sources.append(source)
        }
        return sources
    }

    static func checkURL(_ url: String) throws(EntryFault) {
        if let fault = url.urlFault { throw EntryFault(fault) }
        if isMasked(url) {
            throw EntryFault("the secrets of '\(url)' are shown as ***: it cannot be fetched; give the URL itself")
        }
    }

    /// Reads a non-negative integer.
    static func size(_ value: JSONReader.Value?) throws(EntryFault) -> Int64? {
        guard let value else { return nil }
        guard let size = value.integer, size >= 0 else { throw EntryFault("its size is no whole number of bytes") }
        return size
    }

    /// Reads members named after algorithms, such as `sha-256`.
    static func digests(_ object: JSONReader.Object) throws(EntryFault) -> [Checksum] {
        var digests: [Checksum] = []
        for member in object.members where !member.value.isNull {
            let name = member.name
            guard let algorithm = Checksum.Algorithm(member: name) else { continue }
            guard let hex = member.value.string else { throw EntryFault("its \(name) digest is no text") }
            guard let digest = Checksum(listed: algorithm, hex: hex) else {
                throw EntryFault(Checksum.fault(in: hex, algorithm))
            }
            guard digests.add(digest) else { throw EntryFault("it has two \(name) digests") }
        }
        return digests
    }

    /// Reads `pieces`: objects with `length`, `type` and `hashes`, a text of all digests in order.
    static func pieces(_ value: JSONReader.Value?, size: Int64?) throws(EntryFault) -> [Manifest.Pieces] {
        guard let value else { return [] }
        var all: [Manifest.Pieces] = []
        for item in value.array ?? [value] {
            guard let object = item.object, let length = object["length"]?.integer, let type = object["type"]?.string,
                let hashes = object["hashes"]?.string
            else { throw EntryFault("its pieces have no 'length', 'type' and 'hashes'") }
            guard let algorithm = Checksum.Algorithm(member: type) else { continue }
            guard let bytes = Checksum.bytes(hex: hashes), bytes.count % algorithm.byteCount == 0 else {
                throw EntryFault("the \(type) digests of its pieces are not of \(algorithm.byteCount * 2) digits each")
            }
            let pieces = Manifest.Pieces(length: length, algorithm: algorithm, bytes: bytes)
            if let fault = fault(in: pieces, size: size) { throw EntryFault(fault) }
            all.append(pieces)
        }
        return all.strongestFirst
    }

    /// The fault of pieces; nil if they match the size of the file.
    static func fault(in pieces: Manifest.Pieces, size: Int64?) -> String? {
        if pieces.length < 1 { return "the length of its pieces is not at least 1" }
        if pieces.count == 0, size != 0 { return "it has a piece length and no digests of pieces" }
        guard let size else { return nil }
        let wanted = size / pieces.length + (size % pieces.length == 0 ? 0 : 1)
        if Int64(pieces.count) == wanted { return nil }
        return "its \(size) bytes are \(Int(clamping: wanted).plural("piece")) of \(pieces.length), and "
            + "\(pieces.count) digests are given"
    }

    /// True for a URL in which `fk` has masked a secret.
    static func isMasked(_ url: String) -> Bool {
        url.contains("=***") || url.contains("//***@") || url.contains(":***@") || url.hasSuffix("?***")
    }
}

extension [Manifest.Pieces] {
    var strongestFirst: [Manifest.Pieces] {
        sorted { $0.algorithm.strength > $1.algorithm.strength }
    }
}
