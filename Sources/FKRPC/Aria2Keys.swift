/// The keys of a task that a client asks for.
struct Aria2Keys: OptionSet, Sendable {
    let rawValue: UInt32

    static let gid = Aria2Keys(rawValue: 1 << 0)
    static let status = Aria2Keys(rawValue: 1 << 1)
    static let totalLength = Aria2Keys(rawValue: 1 << 2)
    static let completedLength = Aria2Keys(rawValue: 1 << 3)
    static let uploadLength = Aria2Keys(rawValue: 1 << 4)
    static let bitfield = Aria2Keys(rawValue: 1 << 5)
    static let downloadSpeed = Aria2Keys(rawValue: 1 << 6)
    static let uploadSpeed = Aria2Keys(rawValue: 1 << 7)
    static let pieceLength = Aria2Keys(rawValue: 1 << 8)
    static let numPieces = Aria2Keys(rawValue: 1 << 9)
    static let connections = Aria2Keys(rawValue: 1 << 10)
    static let errorCode = Aria2Keys(rawValue: 1 << 11)
    static let errorMessage = Aria2Keys(rawValue: 1 << 12)
    static let dir = Aria2Keys(rawValue: 1 << 13)
    static let files = Aria2Keys(rawValue: 1 << 14)
    static let all = Aria2Keys(rawValue: (1 << 15) - 1)

    private static let names: [String: Aria2Keys] = [
        "gid": .gid, "status": .status, "totalLength": .totalLength, "completedLength": .completedLength,
        "uploadLength": .uploadLength, "bitfield": .bitfield, "downloadSpeed": .downloadSpeed,
        "uploadSpeed": .uploadSpeed, "pieceLength": .pieceLength, "numPieces": .numPieces,
        "connections": .connections, "errorCode": .errorCode, "errorMessage": .errorMessage, "dir": .dir,
        "files": .files,
    ]

    init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The keys with these names; all of them if there are no names. Unknown names are ignored, as aria2 does.
    init(names: [String]) {
        self = names.isEmpty ? .all : names.reduce(into: []) { $0.formUnion(Self.names[$1] ?? []) }
    }
}
