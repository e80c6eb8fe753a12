import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk get --extract DIR URL`: an archive is unpacked while it arrives, and nobody keeps it.
///
/// ```text
/// stream -> tar, in a staging folder beside DIR -> (length, digest, status of tar, no devices) -> rename to DIR
///        \\-> zip: a file in the staging folder -> bsdtar or unzip -/
/// ```
///
/// The staging folder is locked while the command runs. One that a killed command has left is removed by the next one for the same DIR.
struct ExtractCommand: Command {
    let options: GetOptions
    /// The absolute path of the folder.
    let folder: String
    let context: CommandContext

    static let spec = OptionSpec.value(
        "extract", nil, "DIR", hint: .directory,
        "unpack the archive into DIR while it arrives, and keep no archive: tar in any compression that tar knows, or zip; DIR "
            + "appears when everything is right")

    init(_ path: String, _ options: GetOptions, _ arguments: ParsedArguments, _ context: CommandContext) throws {
        guard !path.isEmpty else { throw arguments.error("--extract: the folder's name is empty.") }
        for (option, written) in [
            ("input", "-i"), ("output", "-o"), ("barrel", "-b"), ("detach", "--detach"), ("shard", "--shard"),
            ("skip", "--skip"),
            ("rename", "--rename"), ("overwrite", "--overwrite"), ("signed-by", "--signed-by"), ("json", "--json"),
            ("at", "--at"),
        ] where arguments.has(option) {
            throw arguments.error(
                "--extract and \(written) exclude each other: the archive of one URL is unpacked, and not kept.")
        }
        guard arguments.operands.count == 1, options.sources.isEmpty, options.objects.isEmpty else {
            throw arguments.error("--extract takes one URL, and \(arguments.operands.count) were given.")
        }
        self.options = options
        self.context = context
        folder = try Paths.absolute(path, from: context.workingDirectory)
    }

    func run() async throws -> Int32 {
        let status = try await StreamRun(context).run(
            stopped: "Stopped. Nothing is kept: the same command begins again."
        ) { try await unpack($0) }
        if status == ExitStatus.done {
            FinishedPaths(options.run.print, isNUL: options.run.endsWithNUL, context)?.write(folder)
        }
        return status
    }

    private func unpack(_ run: StreamRun) async throws -> Int32 {
        let staging = try StagingFolder(for: folder)
        run.whenOver { staging.remove() }
        let task = try await resolve()
        let downloader = try Downloader.forCommand(options.run.orders.settingsForAll(over: global.configure))
        run.opened(downloader)
        let line = StreamProgress(context, isTerminalFree: true)
        defer { line.clear() }
        var unpacker: ArchiveUnpacker?
        var received: Int64 = 0
        var iterator = try await downloader.stream(Builder(description: task)).makeAsyncIterator()
        while let chunk = try await iterator.next() {
            if unpacker == nil { unpacker = try ArchiveUnpacker(Archive(chunk), in: staging, context) }
            try await unpacker?.add(chunk)
            line.add(chunk.count, of: iterator.length)
            received += Int64(chunk.count)
        }
        guard let unpacker else { throw failure("The archive is empty.") }
        try await unpacker.finish()
        try staging.check()
        try staging.publish()
        line.clear()
        if !global.quiet {
            context.say("The archive of \(Formatting.bytes(received)) is unpacked in \(folder.visible).")
        }
        return ExitStatus.done
    }

    private func resolve() async throws -> TaskDescription {
        let transport = try PacedTransport(options.run.configure(global), options.run.own, onWait: context.tellWait)
        defer { transport.shutdown() }
        let (tasks, _, _) = try await options.input.resolve(context, over: transport)
        let all = try tasks.all()
        guard let task = all.first, all.count == 1 else {
            throw failure("--extract takes one archive, and the list has \(all.count) files.")
        }
        return task
    }

    private func failure(_ message: String) -> CommandFailure { CommandFailure(message, status: ExitStatus.taskFailed) }
}

/// The form of an archive, by its first bytes.
enum Archive: Equatable {
    /// A tar; the option of tar for its compression, nil for none.
    case tar(String?)
    case zip

    /// The first bytes of each compression, as its format defines them, and the option of GNU tar, which does not look for itself when
    /// it reads a pipe. bsdtar does, and accepts the options.
    private static let compressions: [(magic: [UInt8], option: String)] = [
        ([0x1f, 0x8b], "--gzip"), ([0x1f, 0x9d], "--uncompress"), (Array("BZh".utf8), "--bzip2"),
        ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "--xz"), ([0x28, 0xb5, 0x2f, 0xfd], "--zstd"),
        (Array("LZIP".utf8), "--lzip"),
        ([0x89, 0x4c, 0x5a, 0x4f, 0x00], "--lzop"), ([0x5d, 0x00, 0x00], "--lzma"),
        ([0x04, 0x22, 0x4d, 0x18], "--use-compress-program=lz4"),
    ]

    init(_ first: Data) {
        if first.starts(with: [0x50, 0x4b, 0x03, 0x04]) || first.starts(with: [0x50, 0x4b, 0x05, 0x06]) {
            self = .zip
        } else {
            self = .tar(Self.compressions.first { first.starts(with: $0.magic) }?.option)
        }
    }
}

/// Unpacks an archive with a program of the system.
private final class ArchiveUnpacker {
    private let archive: Archive
    private let staging: StagingFolder
    private let context: CommandContext
    private var program: Unpacking?
    private let output: StreamOutput
    private let file: Int32?
    /// True once tar has ended its input: the rest of the stream is only compared.
    private var isClosed = false

    init(_ archive: Archive, in staging: StagingFolder, _ context: CommandContext) throws {
        (self.archive, self.staging, self.context) = (archive, staging, context)
        switch archive {
        case .tar(let compression):
            let path = try Self.find(["tar", "bsdtar"], packages: "tar", context)
            // Owners and modes of the archive are not this user's, also for root.
            let words = ["-x", "-f", "-", "-C", staging.content, "--no-same-owner", "--no-same-permissions"]
            let program = try Unpacking(path, words + (compression.map { [$0] } ?? []))
            self.program = program
            output = StreamOutput(program.input)
            file = nil
        case .zip:
            _ = try Self.find(["bsdtar", "unzip"], packages: "libarchive-tools or unzip", context)
            let file = open(staging.archive, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw StagingFolder.failure("\(staging.archive) cannot be made", errno) }
            self.file = file
            output = StreamOutput(file)
        }
    }

    deinit {
        if let file { close(file) }
        program?.kill()
    }

    private static func find(_ names: [String], packages: String, _ context: CommandContext) throws -> String {
        let folders = (context.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map(String.init)
        for name in names {
            for folder in folders where access("\(folder)/\(name)", X_OK) == 0 { return "\(folder)/\(name)" }
        }
        throw CommandFailure(
            "There is no \(names.joined(separator: " and no ")) to unpack the archive: install \(packages).",
            status: ExitStatus.taskFailed)
    }

    /// Refuses a zip with members that leave the folder. unzip removes `..` from their names, and a member could replace another one.
    private static func checkNames(_ archive: String, _ program: String) throws {
        let list = Process()
        let output = Pipe()
        list.executableURL = URL(fileURLWithPath: program)
        list.arguments = ["-Z1", archive]
        list.standardInput = FileHandle.nullDevice
        list.standardOutput = output
        list.standardError = FileHandle.nullDevice
        list.environment = Unpacking.environment
        do { try list.run() } catch {
            throw CommandFailure(
                "\(program) cannot be started: \(error.localizedDescription)", status: ExitStatus.taskFailed)
        }
        let names = output.fileHandleForReading.readDataToEndOfFile()
        list.waitUntilExit()
        for name in names.split(separator: UInt8(ascii: "\n")) {
            let parts = name.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            guard name.first == UInt8(ascii: "/") || parts.contains(where: { $0.elementsEqual("..".utf8) }) else {
                continue
            }
            throw CommandFailure(
                "The archive was not unpacked, and nothing was kept: its member "
                    + "\(String(decoding: name, as: UTF8.self).visible) leaves the folder.",
                status: ExitStatus.taskFailed)
        }
    }

    func add(_ chunk: Data) async throws {
        guard !isClosed, let code = await output.write(chunk) else { return }
        guard code == EPIPE, program != nil else {
            throw StagingFolder.failure("The archive cannot be written beside \(staging.folder)", code)
        }
        isClosed = true
        // It may be right: padding follows the end of an archive.
        if let fault = program?.faultSoFar() { throw fault }
    }

    func finish() async throws {
        if let file {
            let path = try Self.find(["bsdtar", "unzip"], packages: "libarchive-tools or unzip", context)
            guard fsync(file) == 0 else { throw StagingFolder.failure("\(staging.archive) cannot be written", errno) }
            if path.hasSuffix("/unzip") { try Self.checkNames(staging.archive, path) }
            let words =
                path.hasSuffix("/unzip")
                ? ["-q", "-o", staging.archive, "-d", staging.content]
                : ["-x", "-f", staging.archive, "-C", staging.content, "--no-same-owner", "--no-same-permissions"]
            program = try Unpacking(path, words)
        }
        guard let program else { return }
        program.closeInput()
        let fault = await program.ended()
        self.program = nil
        if let fault { throw fault }
    }
}

/// A running program that unpacks.
private final class Unpacking: @unchecked Sendable {
    // Sendable because `process` and the pipes are set once; `errors` has a lock.
    private let process = Process()
    private let stdin = Pipe()
    private let stderr = Pipe()
    private let errors = Locked<[UInt8]>([])
    private let name: String
    private let exited = DispatchSemaphore(value: 0)

    var input: Int32 { stdin.fileHandleForWriting.fileDescriptor }

    /// That of this process without the options of the user's shell: one such as -P must not let members leave the folder.
    static var environment: [String: String] {
        let options = ["TAR_OPTIONS", "TAR_READER_OPTIONS", "UNZIP", "UNZIPOPT", "ZIPINFO", "ZIPINFOOPT"]
        return ProcessInfo.processInfo.environment.filter { !options.contains($0.key) }
    }

    init(_ path: String, _ words: [String]) throws {
        name = path.lastPathPart
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = words
        process.standardInput = stdin
        process.standardOutput = FileHandle.nullDevice
        process.standardError = stderr
        process.environment = Self.environment
        process.terminationHandler = { [exited] _ in exited.signal() }
        do { try process.run() } catch {
            throw CommandFailure(
                "\(path) cannot be started: \(error.localizedDescription)", status: ExitStatus.taskFailed)
        }
        let handle = stderr.fileHandleForReading
        Thread.detachNewThread { [errors] in
            while true {
                let bytes = handle.availableData
                if bytes.isEmpty { return }
                errors.withLock { $0 = Array(($0 + bytes).suffix(4_096)) }
            }
        }
    }

    func closeInput() { try? stdin.fileHandleForWriting.close() }

    func kill() {
        if process.isRunning { process.terminate() }
    }

    /// The error of a program that has ended early; nil if it was right, or if it still runs.
    func faultSoFar() -> CommandFailure? {
        guard exited.wait(timeout: .now() + 5) == .success else { return nil }
        exited.signal()
        return fault
    }

    func ended() async -> CommandFailure? {
        await withCheckedContinuation { done in
            DispatchQueue.global().async { [self] in
                exited.wait()
                exited.signal()
                done.resume(returning: fault)
            }
        }
    }

    private var fault: CommandFailure? {
        guard process.terminationReason == .uncaughtSignal || process.terminationStatus != 0 else { return nil }
        // The thread may still be reading the last lines.
        usleep(20_000)
        let lines = String(decoding: errors.withLock(\.self), as: UTF8.self).split(separator: "\n").suffix(5).map(
            String.init)
        let how =
            process.terminationReason == .uncaughtSignal
            ? "was ended by signal \(process.terminationStatus)" : "ended with status \(process.terminationStatus)"
        return CommandFailure(
            "\(name) \(how): the archive was not unpacked, and nothing was kept.", lines: lines,
            status: ExitStatus.taskFailed)
    }
}

/// The folder beside DIR in which an archive is unpacked. It is locked while its command runs.
final class StagingFolder: Sendable {
    /// The folder that appears at the end.
    let folder: String
    private let root: String
    private let descriptor: Int32
    private let isGone = Locked(false)

    /// The folder that becomes `folder`.
    var content: String { "\(root)/content" }
    /// The file of an archive that cannot be unpacked while it arrives.
    var archive: String { "\(root)/archive" }

    /// Makes it, and removes those that killed commands have left.
    ///
    /// - Throws: `CommandFailure` if `folder` exists and is not an empty folder, or if nothing can be made beside it.
    init(for folder: String) throws {
        self.folder = folder
        let (parent, name) = (folder.folderPart, folder.lastPathPart)
        var status = stat()
        let isThere = lstat(folder, &status) == 0
        if isThere {
            let isEmpty =
                status.st_mode & S_IFMT == S_IFDIR
                && (try? FileManager.default.contentsOfDirectory(atPath: folder))?.isEmpty == true
            guard isEmpty else {
                throw CommandFailure(
                    "\(folder.visible) exists already: --extract needs a new or an empty folder.",
                    status: ExitStatus.taskFailed)
            }
            if let obstacle = FileIO.obstacle(toReplacing: folder) { throw Self.cannotBeReplaced(folder, obstacle) }
        }
        let prefix = ".\(name.utf8.count > 200 ? String(name.prefix(40)) : name).fk-extract-"
        do { try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true) } catch {
            throw CommandFailure(
                "\(parent.visible) cannot be made: \(error.localizedDescription)", status: ExitStatus.taskFailed)
        }
        Self.sweep(parent, prefix)
        var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Self.failure("A folder cannot be made in \(parent.visible)", errno)
        }
        root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure("\(root) cannot be opened", errno) }
        _ = flock(descriptor, LOCK_EX | LOCK_NB)
        guard mkdir("\(root)/content", 0o777) == 0 else { throw Self.failure("\(root)/content cannot be made", errno) }
        if isThere { FileIO.copyAccess(of: folder, to: "\(root)/content") }
    }

    deinit { close(descriptor) }

    private static func sweep(_ parent: String, _ prefix: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? [] where name.hasPrefix(prefix) {
            let path = "\(parent)/\(name)"
            let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_uid == geteuid(), flock(descriptor, LOCK_EX | LOCK_NB) == 0
            else { continue }
            removeTree(path)
        }
    }

    /// Checks what was unpacked: devices, sockets and pipes of an archive are refused.
    func check() throws {
        guard let files = FileManager.default.enumerator(atPath: content) else { return }
        for case let name as String in files {
            var status = stat()
            guard lstat("\(content)/\(name)", &status) == 0 else { continue }
            guard [S_IFREG, S_IFDIR, S_IFLNK].contains(status.st_mode & S_IFMT) else {
                throw CommandFailure(
                    "The archive has a device or a pipe, \(name.visible): it was not unpacked.",
                    status: ExitStatus.taskFailed)
            }
        }
    }

    /// Gives the folder its name.
    func publish() throws {
        guard rename(content, folder) == 0 else {
            if errno == EBUSY { throw Self.cannotBeReplaced(folder, FileIO.mounted) }
            throw Self.failure("\(folder.visible) cannot get its name", errno)
        }
        remove()
    }

    func remove() {
        guard
            !isGone.withLock({ isGone in
                defer { isGone = true }
                return isGone
            })
        else { return }
        Self.removeTree(root)
    }

    /// Removes a folder, also one whose folders an archive has closed to their owner.
    private static func removeTree(_ path: String) {
        if (try? FileManager.default.removeItem(atPath: path)) != nil { return }
        guard let files = FileManager.default.enumerator(atPath: path) else { return }
        for case let name as String in files {
            var status = stat()
            let inner = "\(path)/\(name)"
            if lstat(inner, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { chmod(inner, 0o700) }
        }
        try? FileManager.default.removeItem(atPath: path)
    }

    static func failure(_ what: String, _ code: Int32) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(code))).", status: ExitStatus.taskFailed)
    }

    private static func cannotBeReplaced(_ folder: String, _ obstacle: String) -> CommandFailure {
        CommandFailure(
            "\(folder.visible) cannot be the folder: \(obstacle), and the folder appears by a rename. Name one below it.",
            status: ExitStatus.taskFailed)
    }
}
