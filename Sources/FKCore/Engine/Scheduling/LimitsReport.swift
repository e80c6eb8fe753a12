import FKMiddleware

/// The limits in force on a work path. Rates are in bytes a second.
package struct LimitsReport: Codable, Sendable, Hashable {
    /// A barrel with a limit over its members.
    package struct Barrel: Codable, Sendable, Hashable {
        /// The barrel's name.
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
    }

    /// The limit of all tasks from `fk limit`; nil for none.
    package var rate: Int64?
    /// The limit of all tasks from the configuration of the application that runs the engine; nil for none.
    package var configured: Int64?
    /// The barrels with a limit.
    package var barrels: [Barrel] = []
    /// The running commands with limits, in the order in which they began.
    package var commands: [Command] = []

    /// The stored limits of a work path whose engine is not running.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk` if the stored limit cannot be read.
    package init(stored workPath: WorkPath) throws {
        rate = try StandingLimit.read(in: workPath)
        barrels = try BarrelFile.list(in: workPath).compactMap { name in
            guard let rate = try? BarrelFile.options(name, in: workPath).rateLimit else { return nil }
            return Barrel(name: name, rate: rate)
        }
    }
}
