import FKMiddleware
import Foundation

extension Manifest {
    /// The facts that a list states about one file. Every speaker may state them.
    public struct FileFacts: Sendable, Hashable {
        /// The path of the file relative to its folder, with `/` between folders; nil if the list has only a URL.
        public var name: String?
        /// The URLs of the file, best first. Empty if the list has none.
        public var sources: [Source]
        /// The size in bytes; nil if unknown.
        public var size: Int64?
        /// False if a file of another length than `size` is taken as well: `fk`'s own JSON has the length that was last seen.
        package var bindsSize = true
        /// Digests of the whole file, at most one for each algorithm, strongest first.
        public var digests: [Checksum]
        /// Digests of pieces, at most one set for each algorithm, strongest first.
        public var pieces: [Pieces]
        /// The detached signature, which is stored and not verified; nil for none.
        public var signature: Signature?
        /// Other information, such as `version`, `language` and `description` of a Metalink.
        public var attributes: [String: String]
        /// A text that changes when the file changes, such as an entity tag, a generation, or a time with a size. A later listing with
        /// the same text means the same file. nil if the list has none.
        public var version: String?
        /// The time of the last change; nil if unknown.
        public var modified: Date?
        /// The entity tag that the file must have at its first URL, in quotes; nil accepts any.
        package var entityTag: String?
        /// The line at which the entry begins, from 1; 0 if it comes from no list.
        public var line: Int

        /// Creates facts. All other values are empty.
        public init(name: String? = nil, sources: [Source] = [], line: Int = 0) {
            self.name = name
            self.sources = sources
            self.line = line
            digests = []
            pieces = []
            attributes = [:]
        }

        /// The strongest digest with which a finished file can be verified; nil if there is none.
        public var checksum: Checksum? { digests.first }

        /// A hash of all facts but the name and the line, which differs from process to process; never 0.
        var contentHash: UInt32 {
            var hasher = Hasher()
            for source in sources { source.url.hashBytes(into: &hasher) }
            hasher.combine(size)
            for digest in digests {
                hasher.combine(digest.algorithm)
                hasher.combine(digest.hex)
            }
            hasher.combine(pieces)
            hasher.combine(signature)
            return UInt32(truncatingIfNeeded: hasher.finalize()) | 1
        }
    }

    /// The orders of a list for one file: how it is fetched and where it is stored. They count only in a list of the owner.
    package struct FileOrders: Sendable, Hashable {
        /// The folder, as written; nil for none.
        package var directory: String?
        /// Header fields to send with every request, in order.
        package var headers: [HeaderField] = []
        /// Options of aria2's form except `out`, `dir`, `checksum` and `header`, in order.
        package var options: [Option] = []

        package init() {}

        package var isEmpty: Bool { directory == nil && headers.isEmpty && options.isEmpty }

        /// The keys that the list has for the orders, in the order of first use.
        ///
        /// - Parameter url: the first URL of the entry.
        func keys(in form: Form, url: String) -> [String] {
            var keys: [String] = []
            if directory != nil { keys.append(form == .json ? "directory" : "dir") }
            // The fields of options such as `referer` are headers as well.
            if headers.count > Aria2Options.headers(options, url: url).count { keys.append("header") }
            for option in options where !keys.contains(option.name) { keys.append(option.name) }
            return keys
        }
    }
}

extension String {
    fileprivate func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0 as UInt8)
    }
}
