import TestSupport
import Testing

@testable import FKEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite("Work path")
struct WorkPathTests {
    @Test("opening makes the layout, private to its owner, below missing folders too")
    func layout() throws {
        let scratch = try ScratchWorkPath(create: false)
        let path = WorkPath(scratch.path.root + "/x/y")
        #expect(!path.exists)
        try path.open(create: true)
        #expect(path.exists)
        for folder in [
            path.root, path.tasksFolder, path.barrelsFolder, path.mailboxFolder, path.repliesFolder,
            path.filesFolder, path.quarantineFolder,
        ] {
            #expect(try mode(folder) == 0o700, "\(folder)")
        }
        #expect(try mode(path.layoutPath) == 0o600)
        #expect(try bytes(path.layoutPath) == Array("2\n".utf8))
        try path.open(create: true)
        try path.open(create: false)
    }

    #if os(Linux)
        @Test(
            "missing folders above the work path get the umask's mode and the owner's rights",
            arguments: [(0o022, 0o755), (0o077, 0o700), (0o027, 0o750), (0o777, 0o700)] as [(mode_t, Int)])
        func outerFolders(mask: mode_t, expected: Int) async throws {
            let scratch = try ScratchWorkPath(create: false)
            let path = WorkPath(scratch.path.root + "/downloads/.work")
            try await withOwnUmask(mask) { try path.open(create: true) }
            #expect(try mode(scratch.path.root) == expected)
            #expect(try mode(scratch.path.root + "/downloads") == expected)
            #expect(try mode(path.root) == 0o700)
        }

        @Test("folders and files are private under any umask", arguments: [0o000, 0o022, 0o777] as [mode_t])
        func umasks(mask: mode_t) async throws {
            let scratch = try ScratchWorkPath()
            let path = WorkPath(scratch.path.root + "/w")
            let record = TaskRecord.sample()
            try await withOwnUmask(mask) {
                try path.open(create: true)
                // As the info files of a portion are made.
                _ = try InfoFile.create(
                    at: path.infoPath(record.id), record: record, setsMode: !UsualMask.keepsOwner)
                try Mailbox(path).post(.verb(.suspend, .all))
                try BarrelFile.write(BarrelRecord(name: "b", created: record.created), in: path)
                _ = try SubmissionCounter(path).next()
                try EngineLock.tryAcquire(path)?.release()
            }
            for folder in [path.root, path.tasksFolder, path.mailboxFolder, path.repliesFolder] {
                #expect(try mode(folder) == 0o700, "\(folder)")
            }
            let message = try #require(scratch.names(path.mailboxFolder).first)
            for file in [
                path.layoutPath, path.infoPath(record.id), path.barrelPath("b"), path.numberPath, path.lockPath,
                "\(path.mailboxFolder)/\(message)",
            ] {
                #expect(try mode(file) == 0o600, "\(file)")
            }
        }

        @Test("the umask of a thread is read, and one that takes a permission of the owner is told")
        func reading() async throws {
            for (mask, keepsOwner) in [(0o000, true), (0o077, true), (0o177, true), (0o200, false), (0o777, false)] {
                try await withOwnUmask(mode_t(mask)) { #expect(UsualMask.keepsOwner == keepsOwner) }
            }
            #expect(!UsualMask.keepsOwner(status: "Name:\tfk\n") && !UsualMask.keepsOwner(status: "Umask:\tx\n"))
            #expect(UsualMask.keepsOwner(status: "Name:\tfk\nUmask:\t0022\nState:\tR\n"))
        }

        /// The umask belongs to the process; a thread that has left the shared file system context has its own.
        private func withOwnUmask(_ mask: mode_t, _ body: @escaping @Sendable () throws -> Void) async throws {
            typealias Unshare = @convention(c) (Int32) -> Int32
            let address = try #require(dlsym(nil, "unshare"))
            let unshare = unsafeBitCast(address, to: Unshare.self)
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                Thread.detachNewThread {
                    let cloneFS: Int32 = 0x200
                    done.resume(
                        with: Result {
                            guard unshare(cloneFS) == 0 else { throw DownloadError(system: errno, "unshare", "/") }
                            umask(mask)
                            try body()
                        })
                }
            }
        }
    #endif

    private func code(_ path: WorkPath, create: Bool = true) -> DownloadError? {
        do {
            try path.open(create: create)
            return nil
        } catch {
            return error as? DownloadError
        }
    }

    @Test(
        "a folder of the work path that others may write is refused by its name",
        arguments: ["tasks", "tasks/ab", "mailbox", "turns"])
    func openFolder(name: String) throws {
        let scratch = try ScratchWorkPath()
        let folder = "\(scratch.path.root)/\(name)"
        try FileIO.makeFolder(folder)
        #expect(code(scratch.path) == nil)
        for mode in [0o720, 0o702] as [mode_t] {
            #expect(chmod(folder, mode) == 0)
            for create in [true, false] {
                let error = code(scratch.path, create: create)
                #expect(error?.code == .workPathUnusable && error?.message.contains(folder) == true, "\(error as Any)")
            }
        }
    }

    @Test("a record and a list of programs that others may write are refused by their names") func openFile() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        try scratch.add(record)
        try MiddlewareProgram.List().write(in: scratch.path)
        for path in [scratch.path.infoPath(record.id), scratch.path.middlewaresPath] {
            #expect(chmod(path, 0o666) == 0)
        }
        for (path, read) in [
            (scratch.path.infoPath(record.id), { _ = try StoreReader(scratch.path).record(record.id) }),
            (scratch.path.middlewaresPath, { _ = try MiddlewareProgram.List(in: scratch.path) }),
        ] as [(String, () throws -> Void)] {
            #expect { try read() } throws: {
                ($0 as? DownloadError)?.code == .workPathUnusable && "\($0)".contains(path)
            }
        }
    }

    @Test("a work path of a later layout is refused and left as it is")
    func laterVersion() throws {
        let scratch = try ScratchWorkPath()
        try write(Array("3\n".utf8), scratch.path.layoutPath)
        let error = code(scratch.path)
        #expect(error?.code == .laterVersion)
        #expect(error?.message.contains(scratch.path.root) == true)
        #expect(try bytes(scratch.path.layoutPath) == Array("3\n".utf8))
    }

    @Test("a layout file without a version is refused", arguments: ["", "x", "-1", "0", "1 2"])
    func garbageLayout(text: String) throws {
        let scratch = try ScratchWorkPath()
        try write(Array(text.utf8), scratch.path.layoutPath)
        #expect(code(scratch.path)?.code == .workPathUnusable)
    }

    @Test("a work path others can write is refused", arguments: [0o770, 0o707, 0o702, 0o720])
    func writable(mode: Int) throws {
        let scratch = try ScratchWorkPath()
        chmod(scratch.path.root, mode_t(mode))
        let error = code(scratch.path)
        #expect(error?.code == .workPathUnusable)
        #expect(error?.message.contains(scratch.path.root) == true)
    }

    @Test("a work path others can read is taken")
    func readable() throws {
        let scratch = try ScratchWorkPath()
        chmod(scratch.path.root, 0o755)
        #expect(code(scratch.path) == nil)
    }

    @Test("a work path of another user is refused", .enabled(if: geteuid() == 0, "needs root to give a folder away"))
    func foreign() throws {
        let scratch = try ScratchWorkPath()
        #expect(chown(scratch.path.root, 12_345, 12_345) == 0)
        #expect(code(scratch.path)?.code == .workPathUnusable)
    }

    @Test("a work path that is a file, or below one, is refused")
    func notAFolder() throws {
        let scratch = try ScratchWorkPath()
        let file = scratch.path.root + "/file"
        try write([1], file)
        #expect(code(WorkPath(file))?.code == .workPathUnusable)
        #expect(code(WorkPath(file + "/x"))?.code == .workPathUnusable)
    }

    @Test(
        "a folder whose tasks are no downloads does not become a work path, nor does the root; what a creation has left is no obstacle"
    )
    func otherFiles() throws {
        let scratch = try ScratchWorkPath(create: false)
        let path = scratch.path
        for name in ["", "/photos", "/tasks", "/tasks/1f"] { try FileIO.makeFolder(path.root + name) }
        try write([1], path.root + "/tasks/todo.txt")
        let before = scratch.names(path.root)
        let error = code(path)
        #expect(error?.code == .workPathUnusable && error?.message.contains("\(path.root) ") == true, "\(error as Any)")
        #expect(error?.message.contains("todo.txt. Choose a new or an empty folder") == true, "\(error as Any)")
        #expect(scratch.names(path.root) == before)
        #expect(code(WorkPath("/"))?.message.contains("it is the root of all files. Choose a folder in it") == true)
        #expect(unlink(path.root + "/tasks/todo.txt") == 0)
        #expect(code(path) == nil)
    }

    @Test("a missing work path is not made when nobody asked for it")
    func missing() throws {
        let scratch = try ScratchWorkPath(create: false)
        #expect(code(scratch.path, create: false)?.code == .notFound)
        #expect(!scratch.path.exists)
        #expect(try scratch.path.allTaskIDs().isEmpty)
    }

    @Test("the default follows the environment")
    func defaults() {
        func root(_ environment: [String: String]) -> String {
            WorkPath(WorkPath.defaultRoot(in: environment).path).root
        }
        #expect(root(["FK_WORK_PATH": "/w/p", "HOME": "/h", "XDG_STATE_HOME": "/s"]) == "/w/p")
        #if canImport(Darwin)
            #expect(root(["HOME": "/h"]) == "/h/Library/Application Support/fk")
        #else
            #expect(root(["HOME": "/h", "XDG_STATE_HOME": "/s"]) == "/s/fk")
            #expect(root(["HOME": "/h", "XDG_STATE_HOME": "relative"]) == "/h/.local/state/fk")
            #expect(root(["HOME": "/h", "FK_WORK_PATH": ""]) == "/h/.local/state/fk")
        #endif
        func own(_ program: String, _ environment: [String: String]) -> String {
            WorkPath(WorkPath.applicationRoot(of: program, in: environment).path).root
        }
        let fk = ["FK_WORK_PATH": "/w/p", "HOME": "/h"]
        #if canImport(Darwin)
            #expect(own("org.example.app", fk) == "/h/Library/Application Support/org.example.app/fk")
        #else
            #expect(own("app", fk) == "/h/.local/state/app/fk")
            #expect(own("app", fk.merging(["XDG_STATE_HOME": "/s"]) { $1 }) == "/s/app/fk")
            for name in ["", ".", "..", "a/b", "../fk"] { #expect(own(name, fk) == "/h/.local/state/program/fk") }
        #endif
        #expect(WorkPath("/a/b/").root == "/a/b")
        #expect(WorkPath("/a/./c/../b").root == "/a/b")
    }

    @Test("all ids are found; other files are not taken for tasks")
    func ids() throws {
        let scratch = try ScratchWorkPath()
        let records = (0..<50).map { TaskRecord.sample("https://example.com/\($0)", number: UInt64($0)) }
        for record in records { try scratch.add(record) }
        let folder = (scratch.path.infoPath(records[0].id) as NSString).deletingLastPathComponent
        for name in [
            "x.info", ".info", records[0].id.hex, records[0].id.hex + ".info.new",
            "\(records[0].id.hex.uppercased()).info",
        ] {
            try write([1], "\(folder)/\(name)")
        }
        #expect(try scratch.path.allTaskIDs().sorted() == records.map(\.id).sorted())
        let id = records[7].id
        #expect(try scratch.path.taskIDs(prefix: String(id.hex.prefix(20))) == [id])
        #expect(try scratch.path.taskIDs(prefix: "a").isEmpty)
    }

    @Test("ids survive their written form", arguments: ["https://example.com/", "https://example.com/é", ""])
    func hex(url: String) {
        let id = TaskID(url: url)
        #expect(TaskID(hex: id.hex) == id)
        #expect(id.hex == Digester.hex(Digester.bytes(of: url, .sha256)))
        #expect(TaskID(hex: id.hex.uppercased()) == nil || id.hex == id.hex.uppercased())
        #expect(TaskID(hex: String(id.hex.dropLast())) == nil)
    }

    @Test("a symbolic link is not written through")
    func links() throws {
        let scratch = try ScratchWorkPath()
        let target = scratch.path.root + "/target"
        try write([1], target)
        #expect(symlink(target, scratch.path.root + "/link") == 0)
        #expect(throws: DownloadError.self) { _ = try FileIO.open(scratch.path.root + "/link", O_WRONLY) }
        #expect(throws: DownloadError.self) { try FileIO.contents(of: scratch.path.root + "/link", limit: 10) }
    }

    @Test("a FIFO in place of a file is refused and not waited for")
    func fifo() throws {
        let scratch = try ScratchWorkPath()
        #expect(mkfifo(scratch.path.root + "/fifo", 0o600) == 0)
        #expect(throws: DownloadError.self) { try FileIO.contents(of: scratch.path.root + "/fifo", limit: 10) }
    }
}
