import FKMiddleware
import Foundation

/// The limits in force on a work path. Rates are in bytes a second.
package struct LimitsReport: Codable, Sendable, Hashable {
    /// A barrel with a limit over its members.
    package struct Barrel: Codable, Sendable, Hashable {
        package var name: String
        /// Bytes a second over its members.
        package var rate: Int64
    }

    /// A running command with limits for its own tasks.
    package struct Command: Codable, Sendable, Hashable {
        /// Bytes a second over its tasks; nil for no limit.
        package var rate: Int64?
        /// Tasks at once, 1...256; nil if it uses the shared slots.
        package var jobs: Int?
        /// The number of its tasks that can still run.
        package var tasks: Int
        /// The barrels of its running tasks that its rate limits; nil from an older process.
        package var barrels: [String]?
    }

    /// The limit of all tasks from `fk limit` that is in force now; nil for none.
    package var rate: Int64?
    /// Its daily windows; nil without any.
    package var daily: [DailyWindow]?
    /// The one of them that is in force now; nil for none.
    package var window: DailyWindow?
    /// Its rate outside the windows; nil for none, and without windows.
    package var rateOutside: Int64?
    /// The limit of all tasks from the configuration of the application that runs the engine; nil for none.
    package var configured: Int64?
    /// The barrels with a limit.
    package var barrels: [Barrel] = []
    /// The running commands with limits, in the order in which they began.
    package var commands: [Command] = []

    /// The limit in force of all tasks, or of a barrel's members, which may be that of running commands; nil for none.
    package func inForce(ofBarrel name: String?) -> Int64? {
        let own = if let name { barrels.first { $0.name.isExactly(name) }?.rate } else { rate }
        let rates = commands.filter { command in
            name.map { command.barrels?.containsExactly($0) ?? false } ?? true
        }.compactMap(\.rate)
        return [own, rates.isEmpty ? nil : rates.reduce(0, +)].compactMap(\.self).filter { $0 > 0 }.min()
    }

    /// The stored limits of a work path whose engine is not running.
    ///
    /// - Parameter date: the time by which the windows count; the default is now.
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk` if the stored limit cannot be read.
    package init(stored workPath: WorkPath, at date: Date = Date()) throws {
        let standing = try StandingLimit.stored(in: workPath)
        let now = standing.limit(at: DailyWindow.minute(of: date))
        (rate, window) = (now.rate, now.window)
        if !standing.daily.isEmpty { (daily, rateOutside) = (standing.daily, standing.rate) }
        barrels = try BarrelFile.list(in: workPath).compactMap { name in
            guard let rate = try? workPath.options(ofBarrel: name).rateLimit else { return nil }
            return Barrel(name: name, rate: rate)
        }
    }
}
