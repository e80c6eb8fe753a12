import FKMiddleware
import Foundation

/// The server's answer about a finished file.
public struct RefreshedFile: Sendable, Hashable, Identifiable {
    /// The answer.
    public enum Result: Sendable, Hashable {
        /// The server has the same version.
        case unchanged
        /// The server has another version, or cannot say. The file is fetched again, and the old one stays until then. A file
        /// with `isBound` stays.
        case changed
        /// The file is not at its place any more. It is fetched again; the server is not asked first.
        case missing
        /// The server has no such file any more (404 or 410). The finished file stays.
        case gone
        /// The server could not be asked. Nothing changes.
        case failed(DownloadError)
    }

    /// The task.
    public var id: TaskID
    /// The URL of the task, percent-encoded.
    package var url: String
    /// The absolute path of the file.
    package var path: String
    /// The file.
    public var file: URL { URL(fileURLWithPath: path) }
    /// The answer.
    public var result: Result
    /// True if the task's checksum, size or digests of pieces, such as those of a lock file, bind the file. Another version
    /// would be refused, so a changed file is not fetched again.
    public var isBound = false
    /// True if the file has a refresh or repair that has not ended.
    package var isUnfinished = false
    /// What to fetch, or that the finished file counts again; nil if nothing is to be done.
    package var renewal: Renewal? {
        if isFetched { return Renewal(id) }
        return isUnfinished && result == .unchanged ? .restoring(id) : nil
    }
    /// True if the file is fetched.
    package var isFetched: Bool { result == .missing || result == .changed && !isBound }
}

/// Asks servers whether finished files have changed, with conditional requests (RFC 9110 section 13.1). It needs no engine.
package struct FileRefresher: Sendable {
    private let workPath: WorkPath
    private let configure: Configure
    private let chains: MiddlewareChains
    private let transport: PacedTransport

    /// Creates a refresher.
    ///
    /// - Parameters:
    ///   - chains: their request middlewares prepare the requests.
    ///   - transport: is not shut down here.
    ///   - own: the limits of the command.
    package init(
        _ configure: Configure, _ chains: MiddlewareChains, _ transport: any Transport, _ own: OwnLimits? = nil
    ) {
        workPath = WorkPath(configure)
        self.configure = configure
        self.chains = chains
        self.transport = PacedTransport(transport, configure, own)
    }

    /// A refresher for a process that has no engine: with the programs of the work path, and a transport of its own.
    ///
    /// - Parameter chains: receive the programs, and prepare the requests.
    /// - Throws: the errors of the list of programs, and of the transport kind.
    package init(_ configure: Configure, _ own: OwnLimits?, _ chains: MiddlewareChains) throws {
        let programs = try RegisteredPrograms(
            WorkPath(configure.workPath), chains, isOn: configure.runsMiddlewarePrograms)
        programs.connect { _, _, _, _ in }
        self.init(configure, chains, try configure.makeTransport(), own)
    }

    /// The requests at once.
    private static let width = 8

    /// Asks for each finished file of these tasks, also of those whose refresh or repair has failed, and reports the answers in
    /// order.
    package func refresh(_ ids: [TaskID], each: (RefreshedFile) -> Void) async {
        let reader = StoreReader(workPath)
        var rest = ids[...]
        while !rest.isEmpty {
            let records = reader.records(Array(rest.prefix(256))).filter(\.mayRenew).map(\.ofFinished).filter {
                $0.isForeign != true
            }
            rest = rest.dropFirst(256)
            let results = await withTaskGroup(of: (Int, RefreshedFile).self) { group in
                var results: [Int: RefreshedFile] = [:]
                for (index, record) in records.enumerated() {
                    if index >= Self.width, let (index, file) = await group.next() { results[index] = file }
                    group.addTask { (index, await refresh(record)) }
                }
                for await (index, file) in group { results[index] = file }
                return results
            }
            for index in records.indices { results[index].map(each) }
        }
    }

    private func refresh(_ record: TaskRecord) async -> RefreshedFile {
        let options = record.task.hasOptions ? record.task.options : nil
        let isBound = options?.bindsBytes == true
        let path = record.path ?? ""
        return RefreshedFile(
            id: record.id, url: record.task.url, path: path,
            result: path.existsOnDisk
                ? RefreshRules.decide(
                    await ask(record), known: record.versionOfFinished, askedAt: address(record), isBound: isBound)
                : .missing,
            isBound: isBound, isUnfinished: record.state != .complete)
    }

    /// The address to ask. The validator is of this one, whichever others there are.
    private func address(_ record: TaskRecord) -> String {
        transport.mirrored(record.source ?? record.link ?? record.task.url)
    }

    /// The head of the answer to a conditional request.
    private func ask(_ record: TaskRecord) async -> Result<ResponseHead, DownloadError> {
        let options = record.task.options
        let url = address(record)
        guard let address = URL(string: url) else {
            return .failure(DownloadError(.invalidURL, "The URL cannot be used.", url: url.masked))
        }
        var request = URLRequest(url: address)
        for field in record.headers(for: url) { request.add(field) }
        for (name, value) in RefreshRules.conditions(record.validator) {
            request.setValue(value, forHTTPHeaderField: name)
        }
        var context = TaskContext(
            id: record.id, address: record.task.url, givenURL: record.task.given, attempt: max(1, record.attempts),
            barrels: record.barrels, attributes: record.task.attributes)
        context.isSigned = options.awsSignature != nil
        let chain = chains.request.scoped(for: context, url: url)
        switch await PreparedRequest.run(chain, request, context, secret: options.secretHeaders ?? []) {
        case .failure(let error): return .failure(error)
        case .success(let prepared):
            let wanted: TransportRequest
            var transportOptions = options.transportOptions(over: configure.transport)
            transport.addLogin(to: &transportOptions, of: url)
            do throws(DownloadError) {
                wanted = try TransportRequest(
                    prepared, of: record.task, isStranger: record.isStranger(url),
                    transportOptions, at: Date())
            } catch {
                return .failure(error)
            }
            return await withCheckedContinuation { continuation in
                let probe = HeadProbe { continuation.resume(returning: $0) }
                probe.hold(transport.start(wanted, handler: probe))
            }
        }
    }

    /// Releases the transport's threads and connections.
    package func close() { transport.shutdown() }
}

/// Receives the head of a response, and none of its body. Its state is guarded by the locks.
private final class HeadProbe: TransportHandler {
    private let head = Locked<ResponseHead?>(nil)
    private let operation = Locked<(any TransportOperation)?>(nil)
    private let onEnd: @Sendable (Result<ResponseHead, DownloadError>) -> Void

    init(onEnd: @escaping @Sendable (Result<ResponseHead, DownloadError>) -> Void) { self.onEnd = onEnd }

    /// Keeps the operation until its end.
    func hold(_ operation: any TransportOperation) { self.operation.withLock { $0 = operation } }

    func transport(didReceive head: ResponseHead) throws(DownloadError) {
        self.head.withLock { $0 = head }
        throw DownloadError(.cancelled, "The response was not needed.")
    }

    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict { .enough }

    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        operation.withLock { $0 = nil }
        if let head = head.withLock({ $0 }) { return onEnd(.success(head)) }
        switch result {
        case .failure(let error): onEnd(.failure(error))
        case .success: onEnd(.failure(DownloadError(.protocolViolation, "The server sent no head.")))
        }
    }
}

extension TaskOptions {
    /// True if another version of the file would be refused.
    fileprivate var bindsBytes: Bool { checksum != nil || size != nil || pieces != nil }
}

/// The conditional request for a finished file, and the meaning of its answer.
enum RefreshRules {
    /// The conditional header fields.
    static func conditions(_ known: Validator?) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        if let etag = known?.etag { fields.append(("If-None-Match", etag)) }
        if let date = known?.lastModified { fields.append(("If-Modified-Since", date)) }
        return fields
    }

    /// Decides. `FileVersion` compares the answer with the file.
    ///
    /// - Parameters:
    ///   - url: the address that was asked.
    ///   - isBound: true for a file that its list or its user binds; the default is false.
    ///
    /// | answer | result |
    /// | --- | --- |
    /// | 304 | unchanged |
    /// | 404, 410; a redirect to the address with a slash | gone |
    /// | an empty one without validators, for a file that had both | failed |
    /// | 200 or an unknown 2xx, 203, 206 with equivalent validators, or proven to be the file | unchanged |
    /// | 200, 203, 206 refuted | changed |
    /// | 200, 203, 206 otherwise | unchanged for a bound file, else changed |
    /// | any other status, no answer | failed |
    static func decide(
        _ answer: Result<ResponseHead, DownloadError>, known: FileVersion, askedAt url: String, isBound: Bool = false
    ) -> RefreshedFile.Result {
        let head: ResponseHead
        switch answer {
        case .failure(let error): return .failed(error)
        case .success(let answer): head = answer
        }
        switch head.status {
        case 304: return .unchanged
        case 404, 410: return .gone
        case _ where head.carriesFile: break
        default:
            return .failed(
                DownloadError(
                    .httpStatus, "The server answered \(head.status).", url: head.url.masked,
                    status: head.status))
        }
        // A server sends requests for a folder to its name with a slash: the file is one now.
        if head.redirects > 0, URLParts(head.url).path == URLParts(url).path + "/" { return .gone }
        if known.isEmptied(by: head) {
            return .failed(
                DownloadError(
                    .incompleteBody,
                    "The server answered with no bytes and no validators, and the file has \((known.length ?? 0).plural("byte")). "
                        + "It stays as it is.", url: head.url.masked, status: head.status))
        }
        let now = FileVersion(head, source: url)
        if known.isEquivalent(to: now) { return .unchanged }
        return switch known.joins(now) {
        // Nothing is compared here.
        case .proven(by: .comparison), .unknown: isBound ? .unchanged : .changed
        case .proven: .unchanged
        case .refuted: .changed
        }
    }
}

extension RefreshedFile: CustomStringConvertible {
    /// The answer, the id, and the URL with its secrets masked.
    public var description: String { "RefreshedFile(\(result), \(id.short), \(url.masked))" }
}

extension Configure {
    /// Asks for finished files in a process that has no engine.
    ///
    /// - Parameters:
    ///   - own: the limits of the command.
    ///   - chains: receive the programs of the work path, and prepare the requests.
    ///   - each: receives the answers.
    /// - Throws: the errors of the list of programs, and of the transport kind.
    package func refresh(
        _ ids: [TaskID], _ own: OwnLimits?, _ chains: MiddlewareChains, each: (RefreshedFile) -> Void
    ) async throws {
        let refresher = try FileRefresher(self, own, chains)
        await refresher.refresh(ids, each: each)
        refresher.close()
    }
}
