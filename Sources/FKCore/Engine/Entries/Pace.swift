import FKMiddleware
import Foundation

/// How fast the bytes of an attempt arrive.
struct Pace {
    /// Without a byte for these seconds, a task has no speed.
    private static let silence = 5.0

    private var meter = SpeedMeter()
    /// When the last byte arrived, as far as it was noticed.
    private(set) var lastByte: Date?
    /// The bytes that were there then.
    private var seen: Int64

    init(_ entry: TaskEntry) {
        seen = entry.received
        lastByte = entry.record.partTime == nil ? nil : entry.record.lastByteAt
    }

    /// The smoothed speed; 0 before the second sample.
    var bytesPerSecond: Double { meter.bytesPerSecond }

    /// False while no byte arrives.
    func isMoving(at date: Date) -> Bool { lastByte.map { date.timeIntervalSince($0) < Self.silence } ?? false }

    /// Notices whether bytes have arrived since the last call. Once a second is enough, and costs nothing where the bytes
    /// arrive.
    mutating func record(_ received: Int64, at date: Date) {
        if received > seen { lastByte = date }
        seen = received
    }

    /// Records a sample.
    ///
    /// - Parameter now: nanoseconds of a monotonic clock.
    mutating func sample(_ received: Int64, at now: Int64) { meter.add(time: now, bytes: received) }

    mutating func restart() { meter = SpeedMeter() }
}
