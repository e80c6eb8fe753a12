import FKCore
import FKMiddleware

/// Where the bytes of a finished file came from: an element of `files` in the predicate of `fk provenance`
/// (Docs/provenance.schema.json). Secrets of URLs are masked, and unknown members are left out.
struct ProvenanceDocument {
    let json: JSON
    /// The SHA-256 of the subject.
    let sha256: String?

    /// A digest and who gave it. `fk` has read it from the file for this statement.
    private struct Digest {
        let checksum: Checksum
        /// `list`, `request`, `server` or `fk`.
        let by: String
        /// True if the received bytes were compared with it.
        let compared: Bool

        var isSHA256: Bool { checksum.algorithm == .sha256 && compared }

        var json: JSON {
            .members([
                "algorithm": .string(checksum.algorithm.rawValue), "by": .string(by), "compared": .bool(compared),
                "value": .string(checksum.hex),
            ])
        }
    }

    /// Describes a finished file. It reads the file if its SHA-256 is not known.
    init(_ record: TaskRecord, name: String) {
        let isForeign = record.isForeign == true
        // A server may quote a secret in an entity tag or a redirect.
        let book = record.secretBook
        let sources = Self.sources(record, book)
        let digests = Self.digests(record)
        let via = isForeign ? nil : record.trace?.via?.map { book.mask($0) }
        sha256 = digests.first(where: \.isSHA256)?.checksum.hex
        json = .members(
            [
                "completedBy": JSON(record.completedBy.map { "fk \($0)" }),
                "created": .string(record.created.timestamp),
                "digests": .array(digests.map(\.json)), "existed": isForeign ? true : .null,
                "finished": JSON(record.finished.map(\.timestamp)), "id": .string(record.id.hex),
                "insecure": record.task.optionsBox?.value.insecure == true ? true : .null,
                "list": record.task.optionsBox?.value.list?.document ?? .null,
                "mirrors": Self.masked(record.task.mirrors),
                "name": .string(name), "offeredMirrors": Self.masked(record.offered ?? [], book),
                "redirects": via.map { JSON($0) } ?? .null, "relinkedTo": JSON(record.link.map(\.masked)),
                "response": isForeign ? .null : Self.response(record, book),
                "signedBy": JSON(record.task.optionsBox?.value.signature?.key), "size": JSON(record.expected),
                "sources": sources ?? .null, "sourcesAreComplete": .bool(sources != nil && record.trace?.isCut != true),
                "started": JSON(record.started.map(\.timestamp)), "url": .string(record.task.url.masked),
            ], omittingNull: true)
    }

    private static func masked(_ urls: [String], _ book: SecretBook = SecretBook([])) -> JSON {
        urls.isEmpty ? .null : JSON(urls.map { book.mask($0.masked) })
    }

    /// What the server said of the file.
    private static func response(_ record: TaskRecord, _ book: SecretBook) -> JSON {
        guard let head = record.response else { return .null }
        let validator = record.validator
        return .members(
            [
                "contentEncoding": JSON(validator?.coding), "date": JSON(validator?.date),
                "etag": JSON((validator?.etag).map { book.mask($0) }),
                "httpVersion": .string(head.httpVersion), "lastModified": JSON(validator?.lastModified),
                "mediaType": JSON(head["Content-Type"].map { book.mask($0) }), "redirects": JSON(head.redirects),
                "status": JSON(head.status),
                "url": .string(book.mask(head.url.masked)),
            ], omittingNull: true)
    }

    /// The bytes of each source; nil for a file that was there before, and for one of an earlier version with several addresses.
    private static func sources(_ record: TaskRecord, _ book: SecretBook) -> JSON? {
        guard record.isForeign != true, let length = record.expected,
            record.completedBy != nil || record.plan.count == 1
        else { return nil }
        var order: [String] = []
        var spans: [String: [JSON]] = [:]
        for run in record.sources(length: length) {
            let url = book.mask(run.source ?? record.task.url.masked)
            if spans[url] == nil { order.append(url) }
            spans[url, default: []].append(
                .members(["end": .integer(run.range.upperBound), "start": .integer(run.range.lowerBound)]))
        }
        return .array(order.map { .members(["ranges": .array(spans[$0] ?? []), "url": .string($0)]) })
    }

    private static func digests(_ record: TaskRecord) -> [Digest] {
        let given = record.task.optionsBox?.value.checksum
        let server = record.isForeign == true ? nil : record.validator?.digest
        // What a middleware has made of the file was never compared.
        let isReceived = record.trace?.isChanged != true
        let isListed = record.task.optionsBox?.value.list != nil
        var digests: [Digest] = []
        func add(_ checksum: Checksum?, _ giver: String, _ compared: Bool) {
            if let checksum { digests.append(Digest(checksum: checksum, by: giver, compared: compared)) }
        }
        add(given, isListed ? "list" : "request", isReceived)
        add(server, "server", isReceived && given == nil)
        if !digests.contains(where: \.isSHA256) {
            add(record.fileSHA256.flatMap { try? Checksum(.sha256, hex: $0) }, "fk", true)
        }
        return digests
    }
}
