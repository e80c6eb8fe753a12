/// Divides a rate among the tasks that want it: a round robin in which each task that waits gets the same number of bytes in
/// turn, whatever the size of its pieces and the number of its connections. A task that asks more often gets no more.
///
/// ```text
/// offer -> bytes            nobody waits and the bucket has them, or the task's credit has them
///       -> seconds to wait  the task stands in the queue; time fills the credit of the first one, then of the next
/// spend                     the bytes have passed
/// ```
///
/// A task in the queue gets a credit of one `quantum` and leaves the queue; it comes back behind the others when the credit is
/// spent. Its share is therefore there within one round. A credit that nobody fetches returns to the bucket after `patience`.
/// A task alone gets whole pieces, and up to a burst after a pause.
///
/// A value type without locks; `RateLimiter` is the shared form. Times are nanoseconds of a monotonic clock.
package struct FairShares: Sendable {
    /// What a task may do.
    package enum Offer: Sendable, Hashable {
        /// That many bytes may pass; at least one.
        case bytes(Int)
        /// Nothing may pass for that many seconds, above 0.
        case wait(Double)
    }

    private struct Account {
        /// The size of the piece that it asked for last.
        var asked: Int
        var credit: Double = 0
        var isQueued = false
        /// When it will ask again.
        var due: Int64
    }

    /// The time that a credit is kept after its task should have asked for it, in nanoseconds.
    static let patience: Int64 = 2_000_000_000

    private var bucket: TokenBucket
    private var accounts: [UInt64: Account] = [:]
    /// The tasks that wait, the next one first.
    private var queue: [UInt64] = []
    private var nextExpiry = Int64.max

    /// Creates shares of a rate in bytes a second; nil or a value below 1 means no limit.
    package init(rate: Int64?, now: Int64) { bucket = TokenBucket(rate: rate, now: now) }

    /// Bytes a second; nil for no limit.
    package var rate: Int64? { bucket.rate }

    /// The number of bytes that a waiting task gets in one round: 5 ms of the rate, from 1 KiB to 1 MiB.
    package var quantum: Int { Int(min(1 << 20, max(1 << 10, (rate ?? 0) / 200))) }

    /// Asks for `n` bytes. Nothing is taken: `spend` follows if they pass.
    package mutating func offer(_ n: Int, to task: UInt64, now: Int64) -> Offer {
        guard rate != nil, n > 0 else { return .bytes(n) }
        advance(to: now)
        var account = accounts.removeValue(forKey: task)
        let isAlone = accounts.isEmpty
        let free = queue.isEmpty || isAlone ? max(0, bucket.tokens) : 0
        let credit = account?.credit ?? 0
        let needed = Double(isAlone ? min(Int64(n), bucket.burst) : Int64(min(n, quantum)))
        if credit + free >= needed {
            if account != nil { accounts[task] = account }
            return .bytes(max(1, Int(min(Double(n), credit + free))))
        }
        if account?.isQueued != true { queue.append(task) }
        account = account ?? Account(asked: n, due: now)
        account?.asked = n
        account?.isQueued = true
        accounts[task] = account
        let seconds = wait(of: task)
        let due = now.addingReportingOverflow(Int64(min(seconds, 1e9) * 1e9))
        accounts[task]?.due = due.overflow ? .max : due.partialValue
        nextExpiry = min(nextExpiry, Self.expiry(due.overflow ? .max : due.partialValue))
        return .wait(seconds)
    }

    /// `n` bytes have passed, at most as many as were offered.
    package mutating func spend(_ n: Int, by task: UInt64) {
        guard rate != nil else { return }
        guard var account = accounts[task] else { return bucket.spend(Double(n)) }
        let own = min(Double(n), account.credit)
        account.credit -= own
        bucket.spend(Double(n) - own)
        accounts[task] = account
        if account.credit < 1 { leave(task) }
    }

    /// The task wants nothing any more. Its credit is for the others.
    package mutating func leave(_ task: UInt64) {
        guard let account = accounts.removeValue(forKey: task) else { return }
        if account.isQueued { queue.removeAll { $0 == task } }
        bucket.giveBack(Int(account.credit))
    }

    /// Changes the rate. It applies to the next offer.
    package mutating func setRate(_ rate: Int64?, now: Int64) {
        bucket.setRate(rate, now: now)
        if self.rate == nil { (accounts, queue, nextExpiry) = ([:], [], .max) }
    }

    // MARK: Time

    /// Gives the bytes of the time that has passed to the tasks in the queue.
    private mutating func advance(to now: Int64) {
        bucket.fill(now)
        if now >= nextExpiry { expire(now) }
        while let task = queue.first, bucket.tokens > 0, let account = accounts[task] {
            let given = min(missing(account), bucket.tokens)
            bucket.spend(given)
            accounts[task]?.credit += given
            guard account.credit + given >= goal(account) else { break }
            accounts[task]?.isQueued = false
            queue.removeFirst()
        }
    }

    /// The credit that a waiting task gets.
    private func goal(_ account: Account) -> Double {
        accounts.count > 1 ? Double(quantum) : Double(min(Int64(account.asked), bucket.burst))
    }

    private func missing(_ account: Account) -> Double { max(0, goal(account) - account.credit) }

    /// The seconds until a task in the queue has its credit.
    private func wait(of task: UInt64) -> Double {
        var bytes = -bucket.tokens
        for other in queue {
            if let account = accounts[other] { bytes += missing(account) }
            if other == task { break }
        }
        return max(bytes / Double(rate ?? 1), 1e-6)
    }

    /// Forgets the tasks that have not come back.
    private mutating func expire(_ now: Int64) {
        nextExpiry = .max
        for (task, account) in accounts {
            let end = Self.expiry(account.due)
            if end <= now { leave(task) } else { nextExpiry = min(nextExpiry, end) }
        }
    }

    private static func expiry(_ due: Int64) -> Int64 {
        let (end, overflow) = due.addingReportingOverflow(patience)
        return overflow ? .max : end
    }
}
