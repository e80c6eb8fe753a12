import FKCore
import FKMiddleware

/// Where the bytes of a finished file came from: an element of `files` in the predicate of `fk provenance`
/// (Docs/provenance.schema.json). Secrets of URLs are masked, and unknown members are left out.
struct ProvenanceDocument: Encodable {
    /// The bytes of a source.
    struct Source: Encodable {
        struct Span: Encodable {
            let start: Int64
            let end: Int64
        }
        let url: String
        let ranges: [Span]
    }
    /// A digest and who gave it.
    struct Digest: Encodable {
        enum Giver: String, Encodable {
            case list
            case request
            case server
            /// Read from the file for this statement.
            case fk
        }
        let algorithm: String
        let value: String
        let by: Giver
        /// True if the received bytes were compared with it.
        let compared: Bool
    }
    struct List: Encodable {
        let name: String
        let signer: String?
    }
    /// What the server said of the file.
    struct Response: Encodable {
        let url: String
        let status: Int
        let httpVersion: String
        let redirects: Int
        let etag: String?
        let lastModified: String?
        let date: String?
        let mediaType: String?
        let contentEncoding: String?
    }

    let name: String
    let id: String
    let url: String
    let relinkedTo: String?
    let mirrors: [String]?
    let offeredMirrors: [String]?
    let redirects: [String]?
    let response: Response?
    let size: Int64?
    let sources: [Source]?
    let sourcesAreComplete: Bool
    let digests: [Digest]
    let list: List?
    let signedBy: String?
    let created: String
    let started: String?
    let finished: String?
    let completedBy: String?
    let existed: Bool?
    let insecure: Bool?

    /// The SHA-256 of the subject.
    var sha256: String? { digests.first { $0.algorithm == Checksum.Algorithm.sha256.rawValue && $0.compared }?.value }

    /// Describes a finished file. It reads the file if its SHA-256 is not known.
    init(_ record: TaskRecord, name: String) {
        self.name = name
        id = record.id.hex
        url = URLMasking.mask(record.task.url)
        relinkedTo = record.link.map(URLMasking.mask)
        mirrors = Self.masked(record.task.mirrors)
        offeredMirrors = Self.masked(record.offered ?? [])
        let isForeign = record.isForeign == true
        redirects = isForeign ? nil : record.trace?.via
        let validator = record.validator
        response = (isForeign ? nil : record.response).map { head in
            Response(
                url: URLMasking.mask(head.url), status: head.status, httpVersion: head.httpVersion,
                redirects: head.redirects, etag: validator?.etag, lastModified: validator?.lastModified,
                date: validator?.date, mediaType: head["Content-Type"], contentEncoding: validator?.coding)
        }
        size = record.expected
        sources = Self.sources(record)
        sourcesAreComplete = sources != nil && record.trace?.isCut != true
        digests = Self.digests(record)
        list = record.task.option { $0.list }.map { List(name: $0.name, signer: $0.signer) }
        signedBy = record.task.option { $0.signature?.key }
        created = Timestamp.text(record.created)
        started = record.started.map(Timestamp.text)
        finished = record.finished.map(Timestamp.text)
        completedBy = record.completedBy.map { "fk \($0)" }
        existed = isForeign ? true : nil
        insecure = record.task.option { $0.insecure } == true ? true : nil
    }

    private static func masked(_ urls: [String]) -> [String]? { urls.isEmpty ? nil : urls.map(URLMasking.mask) }

    /// nil for a file that was there before, and for one of an earlier version with several addresses.
    private static func sources(_ record: TaskRecord) -> [Source]? {
        guard record.isForeign != true, let length = record.expected,
            record.completedBy != nil || record.plan.count == 1
        else { return nil }
        var order: [String] = []
        var spans: [String: [Source.Span]] = [:]
        for run in (record.trace ?? Trace()).runs(length: length) {
            let url = run.source ?? URLMasking.mask(record.task.url)
            if spans[url] == nil { order.append(url) }
            spans[url, default: []].append(.init(start: run.range.lowerBound, end: run.range.upperBound))
        }
        return order.map { Source(url: $0, ranges: spans[$0] ?? []) }
    }

    private static func digests(_ record: TaskRecord) -> [Digest] {
        let given = record.task.option { $0.checksum }
        let server = record.isForeign == true ? nil : record.validator?.digest
        // What a middleware has made of the file was never compared.
        let isReceived = record.trace?.isChanged != true
        let isListed = record.task.option { $0.list } != nil
        var digests: [Digest] = []
        func add(_ checksum: Checksum?, _ giver: Digest.Giver, _ compared: Bool) {
            guard let checksum else { return }
            digests.append(
                Digest(algorithm: checksum.algorithm.rawValue, value: checksum.hex, by: giver, compared: compared))
        }
        add(given, isListed ? .list : .request, isReceived)
        add(server, .server, isReceived && given == nil)
        if !digests.contains(where: { $0.algorithm == Checksum.Algorithm.sha256.rawValue && $0.compared }) {
            add(record.fileSHA256.flatMap { try? Checksum(.sha256, hex: $0) }, .fk, true)
        }
        return digests
    }
}
