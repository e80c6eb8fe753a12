import FKCore
import FKManifests
import FKMiddleware

/// A task as aria2's methods show it. Every value is a string.
struct Aria2Status {
    /// The bytes of a piece, aria2's default.
    static let pieceLength: Int64 = 1 << 20

    let row: TaskRow
    /// The ranges of the file if they were read; nil shows the received bytes as the beginning of the file.
    var ranges: [(start: Int64, position: Int64)]?

    init(_ row: TaskRow, ranges: [(start: Int64, position: Int64)]? = nil) {
        self.row = row
        self.ranges = ranges
    }

    /// aria2's word for a state.
    static func word(_ state: DownloadState) -> String {
        switch state {
        case .action: "active"
        case .idle: "waiting"
        case .suspend: "paused"
        case .complete: "complete"
        case .error: "error"
        case .cancel, .unknown: "removed"
        }
    }

    /// The path of the file, finished or not. It is empty while the name is unknown, as with aria2: aria2p deletes what stands
    /// at a path.
    var filePath: String {
        if row.path == nil, !row.isNamed { return "" }
        return row.path ?? row.directory.map { $0 == "/" ? "/\(row.name)" : "\($0)/\(row.name)" } ?? row.name
    }

    private var total: Int64 { row.expected ?? (row.state == .complete ? row.received : 0) }
    /// A server may announce any length: from 1 TiB on pieces are longer, so that their bits stay few.
    private var pieceLength: Int64 {
        var length = Self.pieceLength
        while total >> 20 > length { length <<= 1 }
        return length
    }
    private var pieces: Int64 { Self.quotient(total, pieceLength) }

    /// The quotient, rounded up.
    private static func quotient(_ number: Int64, _ divisor: Int64) -> Int64 {
        number / divisor + (number % divisor > 0 ? 1 : 0)
    }

    func write(_ keys: Aria2Keys, into text: inout JSONText) {
        text.beginObject()
        if keys.contains(.gid) { text.member("gid", GID.text(row.gid)) }
        if keys.contains(.status) { text.member("status", Self.word(row.state)) }
        if keys.contains(.totalLength) { text.member("totalLength", String(total)) }
        if keys.contains(.completedLength) { text.member("completedLength", String(row.received)) }
        if keys.contains(.uploadLength) { text.member("uploadLength", "0") }
        if keys.contains(.bitfield), let field = bitfield { text.member("bitfield", field) }
        if keys.contains(.downloadSpeed) { text.member("downloadSpeed", String(row.bytesPerSecond)) }
        if keys.contains(.uploadSpeed) { text.member("uploadSpeed", "0") }
        if keys.contains(.pieceLength) { text.member("pieceLength", String(pieceLength)) }
        if keys.contains(.numPieces) { text.member("numPieces", String(pieces)) }
        if keys.contains(.connections) { text.member("connections", String(row.connections)) }
        if row.state.isEnded {
            if keys.contains(.errorCode) { text.member("errorCode", String(Aria2ErrorCode.of(row))) }
            if keys.contains(.errorMessage) { text.member("errorMessage", row.error?.text ?? "") }
        }
        if keys.contains(.dir) { text.member("dir", row.dir ?? "") }
        if keys.contains(.files) {
            text.key("files")
            writeFiles(into: &text)
        }
        text.endObject()
    }

    /// Writes the only file of the task, in an array.
    func writeFiles(into text: inout JSONText) {
        text.beginArray()
        text.beginObject()
        text.member("index", "1")
        text.member("path", filePath)
        text.member("length", String(total))
        text.member("completedLength", String(row.received))
        text.member("selected", "true")
        text.key("uris")
        writeURIs(into: &text)
        text.endObject()
        text.endArray()
    }

    /// Writes the addresses of the file, in an array.
    func writeURIs(into text: inout JSONText) {
        text.beginArray()
        let isUsed = row.state == .action || row.state.isEnded
        for (index, url) in ([row.url] + row.mirrors).enumerated() {
            text.beginObject()
            text.member("uri", url)
            text.member("status", isUsed && (index == 0 || row.attempts > index) ? "used" : "waiting")
            text.endObject()
        }
        text.endArray()
    }

    /// One bit for each piece, the first in the highest bit of the first digit; nil while no piece exists.
    var bitfield: String? {
        let pieces = pieces
        guard pieces > 0, row.received > 0 || row.state == .action else { return nil }
        var bits = [UInt8](repeating: 0, count: Int((pieces + 7) / 8))
        let done = ranges ?? [(0, row.state == .complete ? total : row.received)]
        for (start, end) in done where end > start {
            let first = Self.quotient(start, pieceLength)
            let last = end >= total ? pieces : end / pieceLength
            guard first < min(last, pieces) else { continue }
            for piece in first..<min(last, pieces) { bits[Int(piece / 8)] |= 0x80 >> UInt8(piece % 8) }
        }
        return Digester.hex(bits)
    }
}

/// aria2's exit statuses, which clients show with texts of their own.
enum Aria2ErrorCode {
    /// The code of an ended task: 0 for a complete one, 31 for a removed one.
    static func of(_ row: TaskRow) -> Int {
        switch row.state {
        case .complete: 0
        case .cancel: 31
        default: row.error.map(of) ?? 1
        }
    }

    /// The code of an error; 1 for one that aria2 does not know.
    static func of(_ error: DownloadError) -> Int {
        switch error.code {
        case .timeout, .deadlineExceeded: 2
        case .httpStatus: of(status: error.status ?? 0)
        case .connect, .connectionLost, .tls, .proxy: 6
        case .incompleteBody, .badRange: 8
        case .noSpace: 9
        case .fileExists: 13
        case .destination: 16
        case .disk: 17
        case .nameLookup: 19
        case .protocolViolation, .encodedBody, .changedOnServer: 22
        case .redirect: 23
        case .cancelled: 31
        case .checksumMismatch: 32
        default: 1
        }
    }

    private static func of(status: Int) -> Int {
        switch status {
        case 401, 407: 24
        case 404, 410: 3
        case 503: 29
        default: 22
        }
    }
}
