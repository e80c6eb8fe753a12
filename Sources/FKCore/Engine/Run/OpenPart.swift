import FKMiddleware

/// The open part file of an attempt.
struct OpenPart {
    var file: PartFile
    /// The destination.
    let home: Folder
    var counters: LiveCounters
    /// True if the file had bytes when the attempt began.
    var isResumed: Bool
    /// The address that the attempt asks: the task's own, a mirror of the task, or that of their host's mirror.
    let url: String

    /// True if it has to be brought to the destination before it gets its final name.
    var isAway: Bool { file.folder !== home }

    /// Opens the counters for the present ranges.
    ///
    /// - Parameter policies: those of hosts, which may have mirrors.
    init(_ file: PartFile, home: Folder, of entry: TaskEntry, _ policies: HostPolicies) {
        self.file = file
        self.home = home
        counters = LiveCounters(entry.record.ranges)
        isResumed = entry.record.received > 0
        url = policies.mirrored(entry.nextURL)
    }
}

extension OpenPart {
    /// Brings the part to the destination, with its name. Until a copy is on the disk, the original stays, and `TaskRecord.partFolders`
    /// finds it in either place until the next record.
    ///
    /// - Throws: the system's error; `.cancelled` if the run was stopped while it was copied.
    func broughtHome(
        by run: TaskRun, _ key: PartKey, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) -> PartFile {
        let (away, home) = (file, home)
        if try away.folder.movePart(away.name, to: home, key) { return PartFile(away, movedTo: home) }
        guard let copy = try PartFile.made(in: home, name: away.name, key) else {
            throw DownloadError(
                .destination, "\(home.path(of: away.name)) was made by another process: the file is copied again.",
                isRetryable: true)
        }
        do {
            try await run.offThread { () throws(DownloadError) in
                try copy.fill(from: away)
                copy.setTime(away.time)
                try copy.synchronize()
                try home.synchronize()
            }
        } catch {
            copy.remove()
            throw error
        }
        away.remove()
        away.close()
        return copy
    }
}

/// The heads of an attempt's responses, with all fields.
struct Heads {
    /// That of the last response that was recorded; nil without one.
    var last: ResponseHead?
    /// That of the response that failed last; nil if no server answered.
    var refused: ResponseHead?
}

/// What is computed over the bytes of an attempt while they arrive.
struct Computed {
    /// The digest of the whole file, if its bytes arrived in order.
    private(set) var digest: (algorithm: Checksum.Algorithm, hex: String)?
    /// Computes the digest of a large file whose bytes arrived in order.
    private(set) var follower: DigestFollower?
    /// The checksums of the pieces.
    private(set) var sums = PieceSums()

    /// A response has ended at the end of the file.
    mutating func adoptDigest(of receiver: RangeReceiver) {
        if let digester = receiver.digests.digester { digest = (digester.algorithm, digester.hex()) }
        if let follower = receiver.digests.follower { self.follower = follower }
    }

    /// The file was filled from another one with this SHA-256.
    mutating func adopt(sha256: String) { digest = (.sha256, sha256) }

    mutating func merge(_ sums: PieceSums) { self.sums.merge(sums) }

    /// These bytes are fetched again.
    mutating func spoil(_ piece: Range<Int64>) {
        sums.spoil(piece)
        digest = nil
        follower = nil
    }

    /// The file is received from its beginning.
    mutating func restart() { sums = PieceSums() }
}
