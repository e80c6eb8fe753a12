import FKMiddleware

/// What limits a running task, with the figure that shows it.
struct Bottleneck: Sendable, Hashable {
    enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A rate limit of this program.
        case limit
        case middleware
        case processor
        case disk
        /// The server sends no faster on a connection.
        case server
        case network
        /// The time of the measurement was too short, or the system tells nothing.
        case unknown
    }

    var kind: Kind
    /// A sentence with the figure.
    var text: String

    /// The measurements of about a second.
    struct Measures: Sendable {
        /// A rate limit that applies to the task, in bytes a second.
        struct Limit: Sendable, Hashable {
            var name: String
            var rate: Int64
            /// The rate of all tasks to which it applies.
            var used: Double
        }

        /// One TCP connection, as the system tells of it.
        struct Connection: Sendable, Hashable {
            /// The round trip in seconds.
            var roundTrip = 0.0
            var leastRoundTrip = 0.0
            /// Bytes that have arrived and were not read yet.
            var unread: Int64 = 0
            /// The bytes that may be under way at once.
            var window: Int64 = 0
            /// Packets that came in order or not, and those that did not, in the time of the measurement.
            var packets: Int64 = 0
            var disordered: Int64 = 0
        }

        /// The rate of each part of the file that is being received.
        var rates: [Double] = []
        /// True if the server has sent no head yet in this attempt, as far as it is known.
        var isUnanswered = false
        /// True if the whole file has arrived.
        var isWhole = false
        var limits: [Limit] = []
        /// The limit of requests to the host, if one waits for its turn.
        var policy: String?
        /// A program of a middleware that works on this task, and its age in seconds.
        var program: (name: String, seconds: Double)?
        /// The shares of the time that the busiest thread of the engine ran, and that it waited for a processor; nil if
        /// unknown.
        var processor: (ran: Double, queued: Double)?
        /// The share of the time that a thread of the engine waited for a disk; nil if unknown.
        var diskWait: Double?
        /// The share of the time that some process waited for a disk (`/proc/pressure/io`); nil if unknown.
        var pressure: Double?
        /// nil if the system tells nothing.
        var connections: [Connection]?

        var rate: Double { rates.reduce(0, +) }
    }

    /// The first of these that its figure shows: middleware, own limit, processor, disk, server, network.
    static func find(_ measures: Measures) -> Bottleneck {
        if let program = measures.program {
            return .init(
                kind: .middleware, text: "a middleware: \(program.name) has worked for \(duration(program.seconds))")
        }
        let limits = measures.limits.filter { $0.used >= 0.8 * Double($0.rate) }
        if let limit = limits.min(by: { $0.rate < $1.rate }) {
            let text = "our own limit: \(limit.name) of \(rate(Double(limit.rate))), \(rate(limit.used)) used"
            return .init(kind: .limit, text: text)
        }
        if let policy = measures.policy, measures.rate < 1 {
            return .init(kind: .limit, text: "the limit of requests to its host: \(policy)")
        }
        if let busy = measures.processor, busy.ran + busy.queued >= 0.85 {
            let queued = busy.queued >= 0.1 ? ", and waits for a processor for \(percent(busy.queued))" : ""
            return .init(
                kind: .processor, text: "the processor: a thread runs for \(percent(busy.ran)) of the time\(queued)")
        }
        let waited = measures.diskWait ?? 0
        if waited >= 0.3 || measures.isWhole && waited >= 0.1 {
            let pressure = measures.pressure.map { "; disk pressure \(percent($0))" } ?? ""
            return .init(
                kind: .disk, text: "the disk: a thread waits for it for \(percent(waited)) of the time\(pressure)")
        }
        if measures.isWhole {
            return .init(
                kind: .unknown, text: "the end: every byte has arrived, and the file is being checked or published")
        }
        return network(measures)
    }

    private static func network(_ measures: Measures) -> Bottleneck {
        let rates = measures.rates.sorted()
        let connections = measures.connections ?? []
        let slowest = connections.max { $0.roundTrip < $1.roundTrip }
        let packets = connections.reduce(0) { $0 + $1.packets }
        let disordered = connections.reduce(0) { $0 + $1.disordered }
        let trip = slowest.map { ", round trip \(milliseconds($0.roundTrip))" } ?? ""
        if packets >= 50, Double(disordered) >= 0.01 * Double(packets) {
            let share = Double(disordered) / Double(packets)
            return .init(
                kind: .network,
                text: "the network: \(percent(share, isFine: true)) of the packets arrive behind a lost one\(trip)")
        }
        if measures.rate < 1 {
            let unread = connections.reduce(0) { $0 + $1.unread }
            guard unread == 0 else {
                return .init(kind: .unknown, text: "this process: \(bytes(unread)) have arrived and are not read yet")
            }
            let what = measures.isUnanswered ? "there is no answer yet" : "no byte has arrived in two seconds"
            return .init(kind: .server, text: "the server or the network: \(what)\(trip)")
        }
        let each = rates[rates.count / 2]
        if let slowest, slowest.window > 0, slowest.roundTrip > 0 {
            let most = Double(slowest.window) / slowest.roundTrip
            if each >= 0.7 * most {
                return .init(
                    kind: .network,
                    text:
                        "the network: a window of \(bytes(slowest.window)) at a round trip of \(milliseconds(slowest.roundTrip)) "
                        + "is at most \(rate(most)) on a connection")
            }
            if slowest.roundTrip > 0.02, slowest.roundTrip >= 2.5 * slowest.leastRoundTrip, slowest.leastRoundTrip > 0 {
                return .init(
                    kind: .network,
                    text: "a full network: the round trip is \(milliseconds(slowest.roundTrip)), and "
                        + "\(milliseconds(slowest.leastRoundTrip)) without load")
            }
        }
        if rates.count > 1, let least = rates.first, let most = rates.last, most <= 1.3 * least {
            return .init(
                kind: .server,
                text:
                    "the server's cap for a connection: \(rates.count) connections have \(rate(each)) each\(trip); -x with a larger "
                    + "number may help")
        }
        let has = rates.count == 1 ? "the only connection has" : "\(rates.count) connections have"
        let spare = measures.connections == nil ? "" : "; the network shows no limit\(trip), no loss"
        // The server has a window, too, which this side does not see.
        let isFar = rates.count == 1 && slowest.map { $0.roundTrip >= 0.05 } == true
        let help = isFar ? "; more connections (-x) may help" : ""
        return .init(kind: .server, text: "the server: \(has) \(rate(measures.rate))\(spare)\(help)")
    }

    private static func rate(_ value: Double) -> String { Formatting.rate(value) }
    private static func bytes(_ value: Int64) -> String { Formatting.bytes(value) }
    private static func duration(_ value: Double) -> String { Formatting.duration(value, precise: true) }
    private static func milliseconds(_ seconds: Double) -> String {
        seconds < 0.000_1 ? "under 0.1 ms" : "\((seconds * 10_000).rounded() / 10) ms"
    }
    private static func percent(_ share: Double, isFine: Bool = false) -> String {
        isFine ? "\((share * 1_000).rounded() / 10)%" : Formatting.percent(min(1, share))
    }
}
