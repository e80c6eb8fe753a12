/// The rate limits that the keys `+` and `-` choose from: 64 KiB/s, doubled up to 1 GiB/s, then none.
enum RateSteps {
    static let all: [Int64] = (0...14).map { (64 << 10) << $0 }

    /// The next higher limit; nil is none.
    static func higher(than limit: Int64?) -> Int64? {
        limit.flatMap { limit in all.first { $0 > limit } }
    }

    /// The next lower limit. Without a limit it is the first one below the present rate, so that the key has an effect.
    static func lower(than limit: Int64?, rate: Double) -> Int64 {
        let from = limit.map(Double.init) ?? (rate >= 1 ? rate : Double(all[all.count - 1] + 1))
        return all.last { Double($0) < from } ?? all[0]
    }
}
