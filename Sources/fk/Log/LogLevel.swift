/// How much a log contains.
enum LogLevel: String, Sendable, CaseIterable, Comparable {
    /// Failed downloads and refused requests.
    case error
    /// Also failed attempts that are retried, and problems beside the downloads.
    case warn
    /// Also each start and each end.
    case info
    /// Also tasks that are added and queued.
    case debug

    static func < (one: LogLevel, other: LogLevel) -> Bool { one.rank < other.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
