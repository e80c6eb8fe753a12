/// The keys of a task that a client asks for.
struct Aria2Keys: Sendable, Equatable {
    enum Key: UInt32, CaseIterable {
        case gid, status, totalLength, completedLength, uploadLength, bitfield, downloadSpeed, uploadSpeed, pieceLength
        case numPieces, connections, errorCode, errorMessage, dir, files
    }

    static let all = Aria2Keys(names: Key.allCases.map { "\($0)" })

    private static let bits = Dictionary(
        uniqueKeysWithValues: Key.allCases.map { ("\($0)", 1 << $0.rawValue as UInt32) })
    private var bits: UInt32

    /// The keys with these names; all of them if there are no names. Unknown names are ignored, as aria2 does.
    init(names: [String]) { bits = names.isEmpty ? Self.all.bits : names.reduce(0) { $0 | Self.bits[$1, default: 0] } }

    func contains(_ key: Key) -> Bool { bits >> key.rawValue & 1 != 0 }
}
