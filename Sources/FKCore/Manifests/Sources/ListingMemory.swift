import FKMiddleware
import FKStore
import FKTransport
import Foundation

extension ListedPlace {
    /// The answers of a barrel's last listing that their servers can confirm with 304: those with an entity tag or a time.
    ///
    /// It is one file: for each answer a line of JSON, the body and a line feed. An answer that has another digest than its line says was never
    /// there. The file may be deleted at any time: each listing is then asked for as if it were the first one.
    package final class Memory: Sendable {
        /// What is known of an answer without its body.
        private struct Line: Codable {
            var key: String
            var head: ResponseHead
            var length: Int
            var digest: String
        }

        private struct Entry {
            var line: Line
            /// True for a body in the old file, false for one in the new one.
            var isOld: Bool
            var offset: Int
        }

        private struct State {
            var kept: [Entry] = []
            var keys: Set<String> = []
            var bytes = 0
        }

        private let path: String
        private let old: Int32
        private let known: [String: Entry]
        private let new: Int32
        private let state = Locked(State())

        /// The maximum length of all bodies: 256 MiB. Further answers are not kept.
        static let maxBytes = 256 << 20
        /// The maximum length of the line of an answer.
        private static let maxLine = 64 << 10
        /// The fields that a source may read.
        private static let fields = ["ETag", "Last-Modified", "Content-Type", "Link", "Docker-Content-Digest"]

        /// Reads the answers of the last listing. A missing or damaged file has none.
        ///
        /// - Parameter folder: a folder for the bodies until `store`.
        package init(_ path: String, scratch folder: String) {
            self.path = path
            old = open(path, O_RDONLY | O_CLOEXEC)
            known = Self.entries(old)
            let scratch = "\(folder)/fk-listing-\(UUID().uuidString)"
            new = open(scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if new >= 0 { unlink(scratch) }
        }

        deinit { for descriptor in [old, new] where descriptor >= 0 { close(descriptor) } }

        /// The answer to a request at the last listing; nil without one.
        func answer(to request: SourceRequest) -> SourceAnswer? {
            guard let entry = known[Self.key(request)], let bytes = body(entry) else { return nil }
            var head = entry.line.head
            if head.url.isEmpty { head.url = Self.url(request) }
            return SourceAnswer(head: head, bytes: bytes)
        }

        /// True if there is an answer to a request.
        func knows(_ request: SourceRequest) -> Bool { known[Self.key(request)] != nil }

        /// The header fields by which a server confirms an answer.
        static func conditions(_ head: ResponseHead) -> [HeaderField] {
            if let tag = head.first("ETag") { return [HeaderField("If-None-Match", tag)] }
            return head.first("Last-Modified").map { [HeaderField("If-Modified-Since", $0)] } ?? []
        }

        /// Keeps an answer, if its server can confirm it. A confirmed one is `head` and body of the last listing.
        func keep(_ answer: SourceAnswer, to request: SourceRequest, isConfirmed: Bool) {
            let key = Self.key(request)
            state.withLock { state in
                guard new >= 0, !state.keys.contains(key), state.bytes + answer.bytes.count <= Self.maxBytes else {
                    return
                }
                if isConfirmed, var entry = known[key] {
                    entry.isOld = true
                    state.kept.append(entry)
                } else {
                    let url = Self.url(request)
                    guard Self.isConfirmable(answer.head, url), write(answer.bytes, at: state.bytes) else { return }
                    // The URL of the request may have a secret.
                    var head = ResponseHead(status: 200, url: answer.head.url.isExactly(url) ? "" : answer.head.url)
                    head.fields = answer.head.fields.filter { field in
                        Self.fields.contains { $0.caseInsensitiveEquals(field.name) }
                    }
                    guard let digest = Self.digest(head, answer.bytes) else { return }
                    let line = Line(key: key, head: head, length: answer.bytes.count, digest: digest)
                    state.kept.append(Entry(line: line, isOld: false, offset: state.bytes))
                }
                state.keys.insert(key)
                state.bytes += answer.bytes.count
            }
        }

        /// Replaces the file by the answers of this listing. It does nothing if all are confirmed, or without the folder of the file: without
        /// the memory the next listing costs more and is the same.
        package func store() {
            let kept = state.withLock(\.kept)
            guard kept.count != known.count || kept.contains(where: { !$0.isOld }) else { return }
            do {
                guard !kept.isEmpty else {
                    _ = try FileIO.remove(path)
                    return
                }
                try FileIO.replace(path, aside: path + ".new") {
                    try FileIO.create(path + ".new") { descriptor in
                        var offset = 0
                        for entry in kept {
                            guard let body = body(entry) else { continue }
                            let bytes = try StoreJSON.encode(entry.line) + [0x0a] + body + [0x0a]
                            try bytes.withUnsafeBytes {
                                try FileIO.write($0, to: descriptor, at: offset, path: path)
                            }
                            offset += bytes.count
                        }
                    }
                }
            } catch {}
        }

        /// True if the server's word that nothing has changed can be trusted.
        static func isConfirmable(_ head: ResponseHead, _ url: String) -> Bool {
            guard head.status == 200, head.contentCoding == nil, !conditions(head).isEmpty,
                head["Cache-Control"]?.lowercased().contains("no-store") != true
            else { return false }
            // A redirect may lead to an address with a secret.
            if head.url.contains("?"), !head.url.isExactly(url) { return false }
            // Apache's own listing of a folder has the time of the folder, which a file that changes in place leaves as it is (`IndexOptions
            // TrackModified`). A file that is a listing has ranges.
            if head["Server"]?.hasPrefix("Apache") == true, head.first("Accept-Ranges") == nil { return false }
            guard head.first("ETag") == nil else { return true }
            // A time counts seconds (RFC 9110 section 8.8.2.2): what changes in the second of the answer has it too.
            let date = head.first("Date").flatMap { HTTPDate.parse($0) } ?? Date()
            return head.first("Last-Modified").flatMap { HTTPDate.parse($0) }.map { $0.addingTimeInterval(60) <= date }
                ?? false
        }

        private static func url(_ request: SourceRequest) -> String {
            (try? request.url.normalizedURL()) ?? request.url
        }

        /// A digest of the request without its secrets. The URL may have one.
        private static func key(_ request: SourceRequest) -> String {
            let fields = request.headers.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
            return digest(Array(([request.url] + fields).joined(separator: "\n").utf8))
        }

        private static func digest(_ bytes: [UInt8]) -> String {
            let digester = Digester(.sha256)
            bytes.withUnsafeBytes { digester.update($0) }
            return digester.hex()
        }

        /// The digest of an answer: what is damaged says nothing about the place.
        private static func digest(_ head: ResponseHead, _ bytes: [UInt8]) -> String? {
            (try? StoreJSON.encode(head)).map { digest($0 + bytes) }
        }

        // MARK: The file

        private static func entries(_ descriptor: Int32) -> [String: Entry] {
            var found: [String: Entry] = [:]
            var offset = 0
            while descriptor >= 0, let bytes = read(descriptor, at: offset, count: maxLine, isExact: false),
                let end = bytes.firstIndex(of: 0x0a),
                let line = try? JSONDecoder().decode(Line.self, from: Data(bytes[..<end])),
                (0...maxBytes).contains(line.length)
            {
                found[line.key] = Entry(line: line, isOld: true, offset: offset + end + 1)
                offset += end + 1 + line.length + 1
            }
            return found
        }

        private func body(_ entry: Entry) -> [UInt8]? {
            let bytes = Self.read(entry.isOld ? old : new, at: entry.offset, count: entry.line.length, isExact: true)
            guard let bytes, Self.digest(entry.line.head, bytes) == entry.line.digest else { return nil }
            return bytes
        }

        private func write(_ bytes: [UInt8], at offset: Int) -> Bool {
            (try? bytes.withUnsafeBytes { try FileIO.write($0, to: new, at: offset, path: path) }) != nil
        }

        /// - Parameter isExact: true if fewer bytes are none.
        private static func read(_ descriptor: Int32, at offset: Int, count: Int, isExact: Bool) -> [UInt8]? {
            guard count > 0 else { return [] }
            var bytes = [UInt8](repeating: 0, count: count)
            let done = bytes.withUnsafeMutableBytes {
                (try? FileIO.read(into: $0, from: descriptor, at: offset, path: "")) ?? 0
            }
            guard done == count || !isExact && done > 0 else { return nil }
            bytes.removeLast(count - done)
            return bytes
        }
    }
}
