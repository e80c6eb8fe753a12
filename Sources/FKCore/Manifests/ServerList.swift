import FKMiddleware

/// A list that a server sent, without its files. The files come as `Manifest.FileFacts`, which have no orders.
package struct ServerList: Sendable {
    package var form: Manifest.Form
    /// The origin of the list: its name or URL.
    package var origin: String?
    /// The commit that a repository is pinned to, or the version of a record.
    package var commit: String?
    /// The signer that a lock names. It is a claim.
    package var claimedSigner: String?
    /// The faults of entries that were left out, at most 1,000.
    package var faults: [ManifestError] = []
    /// The number of entries that were left out.
    package var faultCount = 0
    /// The number of entries that say the same as an earlier one of their name.
    package var repeatedCount = 0
    /// The number of unsupported sources and digests by kind.
    package var passedOver: [String: Int] = [:]
    /// The line of the first of each kind, where there is one.
    package var passedOverLines: [String: Int] = [:]
    /// True if a part of the list could not be read, so that files may be missing from it.
    package var isIncomplete = false
    /// Sentences of a source for the owner, at most 100.
    package var notes: [String] = []
    /// The keys of the list that would steer the program, each once, in the order of first use.
    package var leftOutKeys: [String] = []
    /// The program that has unpacked the list; nil for a list that was not compressed.
    package var unpacker: Unpacker?

    /// The most keys that are named.
    static let maxKeys = 100

    package init(_ form: Manifest.Form) { self.form = form }

    /// The same without the keys, as a list of the owner has it.
    package var manifest: Manifest {
        var manifest = Manifest(form: form)
        manifest.facts.origin = origin
        manifest.facts.commit = commit
        manifest.facts.claimedSigner = claimedSigner
        manifest.faults = faults
        manifest.faultCount = faultCount
        manifest.repeatedCount = repeatedCount
        manifest.passedOver = passedOver
        manifest.passedOverLines = passedOverLines
        return manifest
    }

    /// Adds the faults and the keys of a part.
    mutating func add(_ part: ServerList) {
        form = part.form
        claimedSigner = part.claimedSigner ?? claimedSigner
        unpacker = part.unpacker ?? unpacker
        faultCount += part.faultCount
        repeatedCount += part.repeatedCount
        faults += part.faults.prefix(max(0, ManifestCollector.maxFaults - faults.count))
        passedOver.merge(part.passedOver, uniquingKeysWith: +)
        passedOverLines.merge(part.passedOverLines) { first, _ in first }
        for key in part.leftOutKeys { leaveOut(key) }
    }

    mutating func add(_ fault: ManifestError) {
        faultCount += 1
        if faults.count < ManifestCollector.maxFaults { faults.append(fault) }
    }

    mutating func leaveOut(_ key: String) {
        guard leftOutKeys.count < Self.maxKeys, !leftOutKeys.contains(key) else { return }
        leftOutKeys.append(key)
    }
}

extension ServerList {
    /// Reads a list that a server sent, in portions. It yields facts alone: folders, header fields and options of the list are
    /// named in `ServerList.leftOutKeys` and go nowhere.
    package struct Reader: Sendable {
        private var reader: ManifestReader
        /// The list; complete at its end.
        private(set) var list: ServerList
        private var isEnded = false
        /// The number of files so far.
        package private(set) var count = 0

        /// Creates a reader.
        ///
        /// - Parameters:
        ///   - form: the format; nil recognizes it by the first 64 KiB.
        ///   - fileName: the name of the list's file, which some formats need.
        package init(
            _ form: Manifest.Form? = nil, fileName: String? = nil, _ reading: Manifest.Reading = Manifest.Reading()
        ) {
            reader = ManifestReader(form, fileName: fileName, reading)
            list = ServerList(form ?? .urls)
        }

        /// The form of the list; nil until it is recognised.
        package var form: Manifest.Form? { reader.form }

        /// Reads the next portion.
        ///
        /// - Throws: `ManifestError`; the reader is unusable afterwards.
        package mutating func parse(_ bytes: [UInt8]) throws(ManifestError) { try reader.take(bytes) }

        /// Removes and returns the complete files.
        package mutating func drainFiles() -> [Manifest.FileFacts] { facts(reader.takeEntries(), reader.form ?? .urls) }

        /// Ends the list.
        ///
        /// - Returns: the list, and the files that were not taken.
        package mutating func finish() throws(ManifestError) -> (list: ServerList, files: [Manifest.FileFacts]) {
            var files = try end()
            while true {
                let more = drainFiles()
                if more.isEmpty { return (list, files) }
                files += more
            }
        }

        /// Ends the list, and returns its next files. `drainFiles` returns the others.
        private mutating func end() throws(ManifestError) -> [Manifest.FileFacts] {
            let manifest = try reader.end()
            list.form = manifest.form
            list.origin = manifest.facts.origin
            list.commit = manifest.facts.commit
            list.claimedSigner = manifest.facts.claimedSigner
            list.faults = manifest.faults
            list.faultCount = manifest.faultCount
            list.repeatedCount = manifest.repeatedCount
            list.passedOver = manifest.passedOver
            list.passedOverLines = manifest.passedOverLines
            let files = facts(manifest.entries, manifest.form)
            for key in manifest.ignoredOptions { list.leaveOut(key) }
            return files
        }

        /// Reads a whole list in portions, so that its files are never in memory at once.
        ///
        /// - Parameter take: receives the files in order.
        /// - Throws: `ManifestError`, and the errors of `take`.
        package mutating func read(
            _ bytes: [UInt8], _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
        ) throws -> ServerList {
            var offset = 0
            while let (files, form) = try next(of: bytes, &offset) { try take(files, form) }
            return list
        }

        /// The next files of a whole list; nil at its end, when `list` is complete.
        ///
        /// - Parameter offset: the number of bytes that were read; 0 for the first files.
        mutating func next(
            of bytes: [UInt8], _ offset: inout Int
        ) throws(ManifestError) -> ([Manifest.FileFacts], Manifest.Form)? {
            while offset < bytes.count {
                let portion = Array(bytes[offset..<min(offset + (1 << 16), bytes.count)])
                offset += portion.count
                try parse(portion)
                let files = drainFiles()
                if !files.isEmpty { return (files, form ?? .urls) }
            }
            var files: [Manifest.FileFacts] = []
            if !isEnded {
                isEnded = true
                files = try end()
            }
            if files.isEmpty { files = drainFiles() }
            return files.isEmpty ? nil : (files, list.form)
        }

        private mutating func facts(_ entries: [Manifest.Entry], _ form: Manifest.Form) -> [Manifest.FileFacts] {
            count += entries.count
            for entry in entries where !entry.orders.isEmpty {
                for key in entry.orders.keys(in: form, url: entry.sources.first?.url ?? "") { list.leaveOut(key) }
            }
            return entries.map(\.facts)
        }
    }
}
