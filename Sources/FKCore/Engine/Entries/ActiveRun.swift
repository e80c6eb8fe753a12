import FKMiddleware
import Foundation

/// The run that has the slot of a task, as `TaskEntry` and the rooms that only report and count see it. `TaskRun` has the rest.
protocol ActiveRun: AnyObject {
    /// The number of attempts that the engine had begun before, which orders the running tasks.
    var order: UInt64 { get }
    var attempt: Attempt { get set }
    var pace: Pace { get set }
    var clock: any EngineClock { get }
    /// The live counters; nil while no part file is open.
    var counters: LiveCounters? { get }
    /// The info file, where it stays open.
    var openInfo: OpenInfoFile? { get }
    /// The smoothed speed in bytes per second; nil while no byte arrives.
    var movingRate: Int64? { get }
    /// What the system waits for, where it transfers the bytes.
    var systemWait: Waiting? { get }
    /// The number of connections that receive a range.
    var connections: Int { get }

    /// The number of requests to a host that have no answer yet.
    func unanswered(of host: String) -> Int
    /// Records a response head that arrived with the whole body.
    func drainInlineHead()
    /// The transfer has other rate limits from now on.
    func use(_ limiters: [RateLimiter])
}
