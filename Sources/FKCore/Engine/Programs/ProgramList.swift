import FKMiddleware

extension MiddlewareProgram {
    /// The middleware programs of a work path, in the order in which they were added. It is a small JSON file,
    /// `middlewares`, replaced as a whole; without it there are none.
    package struct List: Sendable, Hashable {
        private typealias File = ProgramFile<MiddlewareProgram>

        /// The most programs of a work path.
        package static var maxCount: Int { File.maxCount }

        private var file = File()
        package var programs: [MiddlewareProgram] { file.programs }

        package init() {}

        /// Reads the list of a work path. A missing file is an empty list.
        ///
        /// - Throws: `.corruptInfo`, `.laterVersion`, `.tooLarge` or `.disk`, with the file's path.
        package init(in workPath: WorkPath) throws(DownloadError) {
            let path = workPath.middlewaresPath
            file = try File(
                at: path,
                damaged:
                    "The list of middleware programs, \(path), is damaged. Nothing is downloaded without them: correct the file, "
                    + "or remove it and add the programs again."
            ) { $0.name }
        }

        /// Replaces the file.
        ///
        /// - Throws: `.noSpace` or `.disk`. The file is then unchanged.
        package func write(in workPath: WorkPath) throws { try file.write(to: workPath.middlewaresPath) }

        /// Adds a program at the end.
        ///
        /// - Returns: false if it is there already, with the same settings.
        /// - Throws: `.invalidArgument` if another program has its name, or if there are too many.
        package mutating func add(_ program: MiddlewareProgram) throws(DownloadError) -> Bool {
            if let other = self[program.name] {
                if other == program { return false }
                throw DownloadError(
                    .invalidArgument,
                    "There is a middleware program named \(program.name) already. Remove it first, or choose another name."
                )
            }
            guard programs.count < Self.maxCount else {
                throw DownloadError(.invalidArgument, "A work path has at most \(Self.maxCount) middleware programs.")
            }
            file.programs.append(program)
            return true
        }

        /// Removes a program.
        ///
        /// - Throws: `.notFound` if there is none of that name.
        package mutating func remove(named name: String) throws(DownloadError) {
            guard let program = self[name] else { throw Self.missing(name) }
            file.programs.removeAll { $0 == program }
            file[home: name] = nil
        }

        /// The owner lets a program run in the work path with that home.
        package mutating func trust(_ name: String, at home: ProgramHome?) { file[home: name] = home }

        /// The programs that were added to another work path than the one with that home: the list came with a copy.
        package func untrusted(at home: ProgramHome?) -> [MiddlewareProgram] {
            programs.filter { home == nil || file[home: $0.name] != home }
        }

        /// The same for a work path.
        package func untrusted(in workPath: WorkPath) -> [MiddlewareProgram] { untrusted(at: ProgramHome(workPath)) }

        /// The program of that name; nil if there is none.
        package subscript(name: String) -> MiddlewareProgram? { programs.first { $0.name.isExactly(name) } }

        /// The error for a name without a program.
        package static func missing(_ name: String) -> DownloadError {
            DownloadError(.notFound, "There is no middleware program named \"\(name)\".")
        }
    }
}
