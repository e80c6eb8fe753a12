import FKMiddleware
import Foundation

/// The bytes of another program's partial file that may be of use, copied to a part file.
///
/// curl, wget and browsers write a file from its beginning, so its bytes are those before its end. aria2 writes several places at
/// once, and `NAME.aria2` records the finished pieces. Without a digest only the bytes from the beginning on are taken, because the
/// server proves the last 4 KiB before the first missing byte alone.
struct AdoptedBytes: Sendable {
    /// The file as it was read.
    let file: FileIdentity
    /// The ranges of the whole file, with the received bytes; empty if there are none.
    let ranges: [SavedRange]
    /// The length of the whole file, where aria2 has recorded it.
    let length: Int64?

    /// The received bytes.
    var count: Int64 { ranges.reduce(0) { $0 + $1.position - $1.start } }

    /// The most runs of pieces that are taken: each has a live counter.
    private static let mostRuns = 32

    /// Copies the bytes that count. It blocks.
    ///
    /// - Parameters:
    ///   - source: the file. It is only read.
    ///   - control: the bytes of `NAME.aria2`; nil without that file.
    ///   - isCompared: true if a digest is compared with all bytes at the end.
    /// - Throws: `.invalidArgument` for a control file that cannot be understood; `.destination` and others if the part cannot be
    ///   written, which is then empty.
    init(copying source: PartFile, _ control: [UInt8]?, to part: PartFile, isCompared: Bool) throws(DownloadError) {
        guard let identity = source.identity else {
            throw DownloadError(.destination, "\(source.path) cannot be read.")
        }
        file = identity
        let pieces = try control.map { bytes throws(DownloadError) in try Aria2Pieces(bytes, of: source.path) }
        length = pieces?.length
        let size = source.openedLength
        var runs = pieces?.runs ?? [0..<size]
        runs = runs.map { $0.lowerBound..<max($0.lowerBound, min($0.upperBound, size)) }
        // A hole was never written.
        runs = runs.map { run in source.hole(in: run).map { run.lowerBound..<$0 } ?? run }
        if !isCompared { runs = try Self.provable(runs.first, of: source).map { [$0] } ?? [] }
        runs.removeAll(where: \.isEmpty)
        // The last byte is always fetched, so that an answer proves the bytes before it.
        if let last = runs.last, last.upperBound == length ?? size {
            runs[runs.count - 1] = last.lowerBound..<last.upperBound - 1
            runs.removeAll(where: \.isEmpty)
        }
        if runs.count > Self.mostRuns {
            let least = runs.map(\.count).sorted(by: >)[Self.mostRuns - 1]
            runs = Array(runs.filter { $0.count >= least }.prefix(Self.mostRuns))
        }
        ranges = Self.ranges(runs, length: length)
        guard let end = runs.last?.upperBound else { return }
        do throws(DownloadError) {
            try part.fill(from: source)
            try part.truncate(to: end)
        } catch {
            try? part.truncate(to: 0)
            throw error
        }
    }

    /// The bytes from the beginning on whose end the server can prove. A preallocated end of zeros, and any other run of one value,
    /// would prove nothing.
    private static func provable(_ run: Range<Int64>?, of source: PartFile) throws(DownloadError) -> Range<Int64>? {
        guard let run, run.lowerBound == 0 else { return nil }
        var end = run.upperBound
        while end > 0 {
            try source.checkWanted()
            let start = max(0, end - (1 << 20))
            let bytes = try source.bytes(at: start, count: Int(end - start))
            guard let last = bytes.last else { return nil }
            if let other = bytes.lastIndex(where: { $0 != last }) {
                // Some bytes of the run may be real ones. They are fetched again.
                let isShort = run.upperBound - (start + Int64(other)) < 1_024
                return isShort ? run : 0..<start + Int64(other) + 1
            }
            end = start
        }
        return nil
    }

    /// Runs of bytes as ranges: each has the gap behind it.
    private static func ranges(_ runs: [Range<Int64>], length: Int64?) -> [SavedRange] {
        guard let first = runs.first else { return [] }
        var ranges = first.lowerBound > 0 ? [SavedRange(start: 0, end: first.lowerBound)] : []
        for (index, run) in runs.enumerated() {
            let next = index + 1 < runs.count ? runs[index + 1].lowerBound : length
            ranges.append(SavedRange(start: run.lowerBound, end: next, position: run.upperBound))
        }
        return ranges
    }
}

/// aria2's control file, `NAME.aria2`: versions 0, in the order of the machine's bytes, and 1, in that of the network.
struct Aria2Pieces: Sendable, Hashable {
    /// The length of the whole file.
    let length: Int64
    /// The bytes of finished pieces and blocks, in order, joined.
    let runs: [Range<Int64>]

    private static let block: UInt64 = 16 << 10

    /// - Throws: `.invalidArgument` for another file, and for one of a torrent with an impossible length.
    init(_ bytes: [UInt8], of path: String) throws(DownloadError) {
        let fault = DownloadError(
            .invalidArgument,
            "\(path.visible).aria2 is no control file of aria2 that can be read, so nothing tells which bytes of the file are "
                + "there. Continue it with aria2, or fetch it without adopting it.")
        guard bytes.count >= 34, bytes[0] == 0, bytes[1] <= 1 else { throw fault }
        let isNetwork = bytes[1] == 1
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            let part = bytes[offset..<offset + count]
            return (isNetwork ? Array(part) : part.reversed()).reduce(0) { $0 << 8 | UInt64($1) }
        }
        let hash = number(6, 4)
        guard hash <= 64, bytes.count >= 34 + Int(hash) else { throw fault }
        let start = 10 + Int(hash)
        let (piece, total, count) = (number(start, 4), number(start + 4, 8), number(start + 20, 4))
        guard piece > 0, total > 0, total < 1 << 60, count <= UInt64(bytes.count - start - 24),
            (total + piece - 1) / piece <= count * 8
        else { throw fault }
        length = Int64(total)
        let whole = Int64(total)
        var runs: [Range<Int64>] = []
        for index in 0..<Int64((total + piece - 1) / piece)
        where bytes[start + 24 + Int(index / 8)] & (0x80 >> UInt8(index % 8)) != 0 {
            runs.append(index * Int64(piece)..<min((index + 1) * Int64(piece), whole))
        }
        // The pieces in progress, in blocks of 16 KiB.
        var place = start + 24 + Int(count)
        let open = bytes.count >= place + 4 ? number(place, 4) : 0
        place += 4
        for _ in 0..<open {
            guard bytes.count >= place + 12 else { break }
            let (index, size, bits) = (number(place, 4), number(place + 4, 4), number(place + 8, 4))
            guard index <= total / piece, size <= piece, bits <= UInt64(bytes.count - place - 12) else { break }
            let begin = Int64(index * piece)
            for block in 0..<Int64((size + Self.block - 1) / Self.block)
            where block / 8 < Int64(bits) && bytes[place + 12 + Int(block / 8)] & (0x80 >> UInt8(block % 8)) != 0 {
                let from = begin + block * Int64(Self.block)
                runs.append(from..<min(from + Int64(Self.block), begin + Int64(size), max(from, whole)))
            }
            place += 12 + Int(bits)
        }
        self.runs = runs.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: []) { runs, run in
            if let last = runs.last, last.upperBound >= run.lowerBound {
                runs[runs.count - 1] = last.lowerBound..<max(last.upperBound, run.upperBound)
            } else {
                runs.append(run)
            }
        }
    }
}
