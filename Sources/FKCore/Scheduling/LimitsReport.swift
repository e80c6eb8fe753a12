import FKMiddleware

/// The limits in force on a work path. Rates are bytes a second.
package struct LimitsReport: Codable, Sendable, Hashable {
    package struct Barrel: Codable, Sendable, Hashable {
        package var name: String
        package var rate: Int64
    }

    /// A running command with limits for its own tasks.
    package struct Command: Codable, Sendable, Hashable {
        package var rate: Int64?
        package var jobs: Int?
        /// Its tasks that can still run.
        package var tasks: Int
    }

    /// Over all tasks, as `fk limit` set it; nil for none.
    package var rate: Int64?
    /// Over all tasks, as the application that runs the engine set it.
    package var configured: Int64?
    package var barrels: [Barrel] = []
    package var commands: [Command] = []

    /// What is stored, for a work path whose engine is not running.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion`, `.disk`.
    package init(stored workPath: WorkPath) throws {
        rate = try StandingLimit.read(in: workPath)
        barrels = BarrelFile.list(in: workPath).compactMap { name in
            guard let rate = try? BarrelFile.load(name, in: workPath).options.rateLimit else { return nil }
            return Barrel(name: name, rate: rate)
        }
    }
}
