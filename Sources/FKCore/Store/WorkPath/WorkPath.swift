import FKMiddleware
import Foundation

/// The folder of one engine's data, and the names of the files in it.
///
/// ```text
/// <root>/             0700
///   layout            version of this layout
///   engine.lock       EngineLock
///   bases             Bases
///   number            SubmissionCounter
///   waiting           WaitNotice
///   changes           ChangeJournal
///   followers         FollowerLock
///   config            saved settings of the command line
///   settings.lock     excludes others while config or hosts are changed
///   limits            StandingLimit
///   hosts             HostPolicy.all
///   turns/            HostTurns
///   sessions          cookies of logins (`SessionFile`), 0600
///   streams/          StreamFolder
///   runs/             tasks of runs that the command line names
///   middlewares       MiddlewareProgram.List
///   tasks/ab/<id>.info        InfoFile
///   tasks/ab/<id>.pieces      PieceFile
///   tasks/ab/<id>.digests     PieceDigestFile
///   barrels/<name>.barrel     BarrelFile
///   barrels/<name>.barrel.done    FinishedIndex
///   sets/<name>.set           SetRecord
///   mailbox/  replies/        Mailbox
///   delivered/                DeliveredFiles
///   files/ab/<id>/            files of tasks without a destination of their own
///   quarantine/               files that could not be read
/// ```
package struct WorkPath: Sendable, Hashable {
    /// The version of the layout that this code reads and writes.
    package static let layoutVersion = 2
    /// The version with absolute places alone. An engine makes it the present one.
    private static let absoluteLayout = 1

    /// The absolute path without a slash at its end. Empty for an impossible path: one that is not UTF-8 or contains
    /// a zero byte, or a relative one without a current folder.
    package let root: String
    /// Shared by copies and shards.
    private let bases: Bases

    /// Creates a work path. It neither reads nor creates files.
    ///
    /// - Parameters:
    ///   - root: a relative path is relative to the current folder; `~` at its start is the home folder.
    ///   - bases: the paths of named bases (`Places`). The default is none: those of the last engine count.
    package init(_ root: String, bases: [String: String] = [:]) {
        self.root = ProcessInfo.absolute((root as NSString).expandingTildeInPath) ?? ""
        self.bases = Bases(Self.outer(of: self.root) ?? self.root, bases)
    }

    /// Creates a work path from a file URL.
    ///
    /// - Parameters:
    ///   - root: if its path is not UTF-8, the work path cannot be opened.
    ///   - bases: same as for a path.
    package init(_ root: URL, bases: [String: URL] = [:]) {
        self.init(root.path.isEmpty ? "\0" : root.path, bases: bases.mapValues(\.path))
    }

    private init(_ root: String, _ bases: Bases) { (self.root, self.bases) = (root, bases) }

    /// The work path with that root, a shard of this one or the outer one, with the same bases.
    func related(_ root: String) -> WorkPath { WorkPath(root, bases) }

    /// The stored form of places in its records and barrel files.
    package var places: Places { bases.places(of: root) }

    /// Calls `read` with the stored form of places. If a base has no folder, it is called again with the bases that an engine of
    /// another process has named meanwhile.
    ///
    /// - Throws: the error of `read`.
    func withPlaces<Value>(_ read: (Places) throws -> Value) throws -> Value {
        do {
            return try read(places)
        } catch let error as DownloadError where error.remedy == .nameBase && bases.reload() {
            return try read(places)
        }
    }

    /// Prepares the work path for records of this version. Only for the process that owns the engine.
    ///
    /// - Throws: `.workPathUnusable` or `.laterVersion` if the file of the bases cannot be understood; `.noSpace` or `.disk`.
    package func recordBases() throws {
        let isOld = try storedLayout() == Self.absoluteLayout
        // First: after a kill between the two, the next engine does both again.
        try bases.record(noteWorkPath: isOld)
        if isOld { try writeLayout() }
    }

    /// Compares the bytes of the roots.
    package static func == (one: WorkPath, other: WorkPath) -> Bool { one.root.isExactly(other.root) }
    package func hash(into hasher: inout Hasher) { ExactText(root).hash(into: &hasher) }

    // MARK: Names

    /// The names of two files that every work path has.
    package static let (layoutName, lockName) = ("layout", "engine.lock")

    /// The file with the version of the layout.
    package var layoutPath: String { root + "/" + Self.layoutName }
    /// The file that `EngineLock` locks.
    package var lockPath: String { root + "/" + Self.lockName }
    /// The file of `SubmissionCounter`.
    package var numberPath: String { root + "/number" }
    /// The settings file of the command line.
    package var configPath: String { root + "/config" }
    /// The file that is locked while one with settings is read, changed and replaced. A shard has that of its work path.
    package var settingsLockPath: String { ofShards.root + "/settings.lock" }

    /// Runs `body` while no other process changes settings of the work path (`FileLock.exclusively`).
    package func withSettingsLock<Value>(waiting seconds: Double = 10, _ body: () throws -> Value) throws -> Value {
        try FileLock.exclusively(settingsLockPath, waiting: seconds, body)
    }
    /// The file of `WaitNotice`.
    package var waitingPath: String { root + "/waiting" }
    /// The file of `ChangeJournal`.
    package var changesPath: String { root + "/changes" }
    /// The file of `FollowerLock`.
    package var followersPath: String { root + "/followers" }
    /// The file of `StandingLimit`.
    package var limitsPath: String { root + "/limits" }
    /// The file of `HostPolicy.all`.
    package var hostsPath: String { root + "/hosts" }
    /// The file of `SessionFile`.
    package var sessionsPath: String { root + "/sessions" }
    /// The folder of `HostTurns`.
    package var turnsFolder: String { root + "/turns" }
    /// The file of `AwaitedMembers`.
    package var awaitedPath: String { root + "/awaited" }
    /// The file of `MiddlewareProgram.List`.
    package var middlewaresPath: String { root + "/middlewares" }
    /// The list of source programs.
    package var sourcesPath: String { root + "/sources" }
    /// The folder in which the command line keeps the tasks of runs that failed. A shard has that of its work path.
    package var runsFolder: String { ofShards.root + "/runs" }
    /// The folder of the records of published sets.
    package var setsFolder: String { root + "/sets" }
    /// The folder of the info files.
    package var tasksFolder: String { root + "/tasks" }
    package var barrelsFolder: String { root + "/barrels" }
    /// The folder of the requests to the engine.
    package var mailboxFolder: String { root + "/mailbox" }
    /// The folder of the engine's answers.
    package var repliesFolder: String { root + "/replies" }
    /// The folder of files without a destination of their own.
    package var filesFolder: String { root + "/files" }
    /// The folder of pieces that the system has delivered and no attempt has used yet.
    package var deliveredFolder: String { root + "/delivered" }
    /// The folder of unreadable files.
    package var quarantineFolder: String { root + "/quarantine" }

    package func infoPath(_ id: TaskID) -> String {
        // Built from bytes instead of strings, because it is called several times per task.
        var root = root
        return root.withUTF8 { root in
            String(unsafeUninitializedCapacity: root.count + 80) { path in
                var end = path.update(fromContentsOf: root)
                func append(_ text: StaticString) {
                    end = path[end...].update(
                        fromContentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
                }
                append("/tasks/")
                id.writeHex(into: UnsafeMutableBufferPointer(rebasing: path[(end + 3)...]))
                end = path[end...].update(fromContentsOf: path[(end + 3)..<(end + 5)])
                append("/")
                end += 64
                append(".info")
                return end
            }
        }
    }

    /// The checksums of the pieces of a task's finished file.
    package func piecesPath(_ id: TaskID) -> String { infoPath(id).dropLast(4) + "pieces" }

    /// The digests that a list has given for the pieces of a task's file.
    package func digestsPath(_ id: TaskID) -> String { infoPath(id).dropLast(4) + "digests" }

    /// The folder for the files of a task without a destination of its own. This type never creates it.
    package func filesFolder(_ id: TaskID) -> String {
        let hex = id.hex
        return "\(root)/files/\(hex.prefix(2))/\(hex)"
    }

    /// The barrel's file: its name with everything except ASCII letters, digits, `-`, `_` and inner dots
    /// percent-encoded.
    package func barrelPath(_ name: String) -> String {
        "\(root)/barrels/\(name.barrelFileName).barrel"
    }

    /// True if the task has an info file.
    package func hasTask(_ id: TaskID) -> Bool { access(infoPath(id), F_OK) == 0 }

    /// True if the barrel has a file.
    package func hasBarrel(_ name: String) -> Bool { access(barrelPath(name), F_OK) == 0 }

    // MARK: Opening

    /// Checks the work path and, with `create`, creates its missing parts.
    ///
    /// Folders get mode 0700 and files 0600, whatever the umask is. Missing folders above the work path get the mode of
    /// the umask.
    ///
    /// - Throws: `.notFound` if it is missing and `create` is false; `.laterVersion` if a later version of this
    ///   software created it (it stays unchanged); `.workPathUnusable` if it is not a folder, it or a folder in it belongs to
    ///   another user or is writable by others, it is the root of all files, or it cannot be read and written. All of them
    ///   name the path.
    package func open(create: Bool) throws {
        guard !root.isEmpty else {
            throw DownloadError(
                .workPathUnusable,
                "The work path cannot be used: it is not UTF-8 text, holds a zero byte, or there is no current folder.")
        }
        if create { try makeRoot() }
        try checkRoot(writes: create)
        try checkFolders()
        try checkLayout(create: create)
        StreamFolder.sweep(self)
        guard create else { return }
        for folder in [tasksFolder, barrelsFolder, mailboxFolder, repliesFolder, filesFolder, quarantineFolder] {
            do { try FileIO.makeFolder(folder) } catch { throw unusable("cannot be written", cause: error) }
        }
    }

    /// True if the root folder exists, whatever it contains.
    package var exists: Bool {
        var status = stat()
        return stat(root, &status) == 0
    }

    /// Creates the folder of the work path. Only the root itself is private: a folder above it may be the one of the finished
    /// files.
    ///
    /// - Throws: `.workPathUnusable`, also for the root of all files, or `.noSpace`.
    package func makeRoot() throws {
        var missing: [String] = []
        var path = root
        var status = stat()
        while stat(path, &status) != 0, errno == ENOENT, path.utf8.count > 1 {
            missing.append(path)
            path = path.folderPart
        }
        if missing.isEmpty { try checkNames() }
        do {
            for folder in missing.dropFirst().reversed() { try FileIO.makeOuterFolder(folder) }
            if !missing.isEmpty { try FileIO.makeFolder(root) }
            FolderAttributes.set(FolderAttributes.wanted(isNew: !missing.isEmpty, on: .current), of: root)
        } catch {
            throw unusable("cannot be made", cause: error, remedy: .chooseWorkPath)
        }
    }

    /// Refuses the root of all files, and a folder whose `tasks` has other files: no file could be downloaded
    /// into it or below it afterwards.
    private func checkNames() throws {
        guard access(layoutPath, F_OK) != 0 else { return }
        if root == "/" { throw unusable("cannot be made: it is the root of all files. Choose a folder in it") }
        // A task's folder has two digits.
        let names = (try? FileIO.names(in: root + "/tasks")) ?? []
        guard let other = names.filter({ !$0.hasPrefix(".") && $0.utf8.count != 2 }).min(),
            access(layoutPath, F_OK) != 0
        else { return }
        throw unusable(
            "cannot be made: its folder tasks has other files, such as \(other.visible). Choose a new or an empty folder"
        )
    }

    /// - Parameter writes: false for a query, which also reads a work path on a read-only file system.
    private func checkRoot(writes: Bool) throws {
        var status = stat()
        guard stat(root, &status) == 0 else {
            if errno == ENOENT { throw DownloadError(.notFound, "There is no work path \(root).") }
            throw unusable("cannot be looked at", cause: DownloadError(system: errno, "stat", root))
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw unusable("is not a folder") }
        guard status.st_uid == geteuid() else {
            throw unusable("belongs to another user (uid \(status.st_uid)); choose a work path of your own")
        }
        guard status.st_mode & 0o022 == 0 else {
            // A command ends its line, so that it can be copied.
            throw DownloadError(
                .workPathUnusable,
                "The work path \(root) can be written by other users. Run: chmod go-w \(root.shellWord)")
        }
        guard access(root, (writes ? W_OK : 0) | R_OK | X_OK) == 0 || !writes && errno == EROFS else {
            throw unusable(
                "cannot be written", cause: DownloadError(system: errno, "write", root), remedy: .chooseWorkPath)
        }
    }

    /// Checks the folders below the root. Another user could have put records and requests into them, also before the root became
    /// private.
    private func checkFolders() throws {
        func check(_ folder: String) throws {
            var status = stat()
            guard stat(folder, &status) == 0, let fault = FileIO.ownerFault(status) else { return }
            throw DownloadError(
                .workPathUnusable,
                "The work path \(root) cannot be used: its folder \(folder) \(fault). Look for files that are not yours, and "
                    + (status.st_uid == geteuid() ? "run: chmod -R go-w \(root.shellWord)" : "remove them."))
        }
        for folder in [
            tasksFolder, barrelsFolder, mailboxFolder, repliesFolder, filesFolder, deliveredFolder, quarantineFolder,
            turnsFolder, shardsFolder, streamsFolder, setsFolder, runsFolder,
        ] { try check(folder) }
        try FileIO.forEachName(in: tasksFolder) { name in
            try check("\(tasksFolder)/\(String(decoding: name, as: UTF8.self))")
            return true
        }
    }

    private func checkLayout(create: Bool) throws {
        guard let version = try storedLayout() else {
            if create { try writeLayout() }
            return
        }
        guard version <= Self.layoutVersion else {
            throw DownloadError(
                .laterVersion,
                "The work path \(root) has layout version \(version); this program knows \(Self.layoutVersion). "
                    + "Use a newer program or another work path.")
        }
    }

    /// The version in the layout file; nil without a file.
    private func storedLayout() throws -> Int? {
        let bytes: [UInt8]
        do {
            bytes = try FileIO.contents(of: layoutPath, limit: 64)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch {
            throw unusable("has a layout file that cannot be read", cause: error)
        }
        let digits = bytes.drop { $0.isBlank }.prefix { !$0.isBlank }
        guard let version = Int(String(decoding: digits, as: UTF8.self)), version > 0,
            bytes[digits.endIndex...].allSatisfy(\.isBlank)
        else {
            throw unusable(
                "has a layout file that does not hold a version; if it is one, write \(Self.layoutVersion) into \(layoutPath)"
            )
        }
        return version
    }

    private func writeLayout() throws {
        let bytes = Array("\(Self.layoutVersion)\n".utf8)
        do {
            // Two processes may be first at the same time, also on two machines, so each has its own file. It is synced before
            // the rename, once for each work path: otherwise a power cut in its first seconds could leave an empty
            // file or one with another file's bytes, and no command could open the work path again.
            let aside = "\(layoutPath).\(UUID().uuidString)"
            try bytes.withUnsafeBytes { bytes in
                try FileIO.replace(layoutPath, aside: aside, bytes) { try FileIO.synchronize(aside) }
            }
        } catch {
            throw unusable("cannot be written", cause: error)
        }
    }

    private func unusable(_ reason: String, cause: (any Error)? = nil, remedy: Remedy? = nil) -> DownloadError {
        let cause = cause as? DownloadError
        return DownloadError(
            cause?.code == .noSpace ? .noSpace : .workPathUnusable, "The work path \(root) \(reason).",
            underlying: cause?.message, remedy: remedy)
    }

    // MARK: Default

    /// The default root of `fk`: `FK_WORK_PATH`, else `fk` in the folder of states (`stateFolder`).
    ///
    /// - Returns: the path, and the variable that it comes from; nil if the system reports the home folder.
    package static func defaultRoot(in environment: [String: String]) -> (path: String, variable: String?) {
        if let path = environment["FK_WORK_PATH"], !path.isEmpty { return (path, "FK_WORK_PATH") }
        let (folder, variable) = stateFolder(in: environment)
        return (folder + "/fk", variable)
    }

    /// The default root of an application: `fk` in the application's own folder, which may have other files too. `FK_WORK_PATH` is that
    /// of `fk` alone.
    ///
    /// - Parameter program: the application's name. One that cannot be a folder's is replaced.
    /// - Returns: same as `defaultRoot`.
    package static func applicationRoot(
        of program: String, in environment: [String: String]
    ) -> (path: String, variable: String?) {
        let (folder, variable) = stateFolder(in: environment)
        let isName = !program.isEmpty && program != "." && program != ".." && !program.utf8.contains(UInt8(ascii: "/"))
        return (folder + "/" + (isName ? program : "program") + "/fk", variable)
    }

    /// The folder in which each program has its own: on Apple systems `~/Library/Application Support`, else `$XDG_STATE_HOME`, else
    /// `~/.local/state`. A relative `XDG_STATE_HOME` is ignored, as the XDG specification requires, and so is a `HOME` that is not an
    /// absolute path.
    private static func stateFolder(in environment: [String: String]) -> (path: String, variable: String?) {
        func absolute(_ name: String) -> String? {
            environment[name].flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
        }
        #if canImport(Darwin)
            let state = "/Library/Application Support"
        #else
            let state = "/.local/state"
            if let path = absolute("XDG_STATE_HOME") { return (path, "XDG_STATE_HOME") }
        #endif
        if let home = absolute("HOME") { return (home + state, "HOME") }
        return (NSHomeDirectory() + state, nil)
    }

    /// The default of `fk` with the environment of this process.
    package static var ofCommand: WorkPath { WorkPath(checked: defaultRoot(in: ProcessInfo.processInfo.environment)) }

    /// The default of this process, as an application. On Apple systems its name is the bundle's identifier.
    package static var ofApplication: WorkPath {
        let process = ProcessInfo.processInfo
        #if canImport(Darwin)
            let name = Bundle.main.bundleIdentifier ?? process.processName
        #else
            let name = process.processName
        #endif
        return WorkPath(checked: applicationRoot(of: name, in: process.environment))
    }

    /// Its root is empty, so it cannot be opened, if the variable that sets it is not UTF-8.
    private init(checked root: (path: String, variable: String?)) {
        self.init(root.variable.map(ProcessInfo.isText(variable:)) ?? true ? root.path : "\0")
    }

    /// The root as a URL; without a path if the root is empty.
    package var url: URL { root.isEmpty ? ProcessInfo.unusable : URL(fileURLWithPath: root, isDirectory: true) }
}

extension UInt8 {
    /// A blank, a tab or the end of a line.
    fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0d).contains(self) }
}
