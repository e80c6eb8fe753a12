import Foundation
import Synchronization

/// The name of a message: `<wall clock in ns, 20 digits>-<pid>-<random>`. Names sort by time of posting.
package struct MessageID: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name itself.
    package let name: String
    /// The name itself.
    package var description: String { name }

    private static let last = Atomic<UInt64>(0)

    /// Creates a new name. The names of one process ascend even if the clock is set back.
    package init() {
        let now = UInt64(max(0, Date().timeIntervalSince1970) * 1e9)
        var time = now
        var seen = Self.last.load(ordering: .relaxed)
        while true {
            time = max(now, seen + 1)
            let (done, original) = Self.last.compareExchange(expected: seen, desired: time, ordering: .relaxed)
            if done { break }
            seen = original
        }
        let digits = String(time)
        let random = String(UInt32.random(in: 0 ... .max), radix: 16)
        name = "\(String(repeating: "0", count: max(0, 20 - digits.count)))\(digits)-\(getpid())-\(random)"
    }

    /// The id with that name.
    init(name: String) { self.name = name }
}
