import FKCore
import FKMiddleware

/// The failed and suspended tasks of the newest runs of a work path: a file with an id a line for each run, in the folder `runs`.
struct RunBook: Sendable {
    /// The most runs that are kept.
    static let limit = 20
    /// The most tasks of a run that are kept.
    static let taskLimit = RunFailures.limit

    private let workPath: WorkPath

    /// - Parameter workPath: a shard's is allowed: its runs are kept with those of the whole.
    init(_ workPath: WorkPath) { self.workPath = workPath }

    /// Keeps the tasks of a run that has ended, or that waits for its suspended tasks.
    ///
    /// - Parameter known: the name that the run has already; its tasks are replaced. Nil, the default, gives it the next one.
    /// - Returns: the name of the run; nil without tasks, and where it cannot be written. The run itself has ended, so that this is no
    ///   error.
    func keep(_ failed: [TaskID], suspended: [TaskID], as known: RunName? = nil) -> RunName? {
        let ids = Array(failed.prefix(Self.taskLimit)) + Array(suspended.prefix(Self.taskLimit))
        guard workPath.exists else { return nil }
        if ids.isEmpty {
            if case .number(let number) = known { _ = try? FileIO.remove("\(workPath.runsFolder)/\(number)") }
            return nil
        }
        return try? workPath.withSettingsLock {
            let folder = workPath.runsFolder
            try FileIO.makeFolder(folder)
            let numbers = try numbers()
            let next: Int
            if case .number(let number) = known { next = number } else { next = (numbers.last ?? 0) + 1 }
            let path = "\(folder)/\(next)"
            try Array(ids.map { $0.hex + "\n" }.joined().utf8).withUnsafeBytes {
                try FileIO.replace(path, aside: path + ".new", $0)
            }
            for old in numbers.filter({ $0 != next }).dropLast(Self.limit - 1) { try FileIO.remove("\(folder)/\(old)") }
            return .number(next)
        }
    }

    /// The tasks of a run. Some may have been forgotten since.
    ///
    /// - Throws: `CommandFailure` for a run that is not kept; `.disk` or `.tooLarge` if its file cannot be read.
    func ids(of name: RunName) throws -> [TaskID] {
        let numbers = try numbers()
        let number: Int?
        switch name {
        case .last: number = numbers.last
        case .number(let wanted): number = numbers.contains(wanted) ? wanted : nil
        }
        guard let number else {
            let kept = numbers.map { "r\($0)" }.joined(separator: ", ")
            throw CommandFailure(
                numbers.isEmpty
                    ? "There is no run with failed or suspended files."
                    : "There is no \(name.words). Kept are: \(kept).",
                status: ExitStatus.notFound)
        }
        let bytes = try FileIO.contents(of: "\(workPath.runsFolder)/\(number)", limit: 2 * Self.taskLimit * 65)
        return bytes.split(separator: UInt8(ascii: "\n")).compactMap {
            TaskID(hex: String(decoding: $0, as: UTF8.self))
        }
    }

    /// The numbers of the runs, the oldest first.
    private func numbers() throws -> [Int] {
        try FileIO.names(in: workPath.runsFolder).compactMap { Int($0) }.filter { $0 > 0 }.sorted()
    }
}

extension ParsedArguments {
    /// The run of `--run`; nil without the option, and for `--run` alone.
    ///
    /// - Parameter isNeeded: true if `--run` alone is an error.
    func run(isNeeded: Bool) throws -> RunName? {
        guard let text = self["run"] else { return nil }
        if let name = RunName(text) { return name }
        if text.isEmpty, !isNeeded { return nil }
        throw error(
            text.isEmpty
                ? "--run needs the name of a run: give --run last, or the name that the run showed, such as --run r3."
                : "--run: '\(text.visible)' is not the name of a run. Give last, or a name such as r3.")
    }
}
