import TestSupport

@testable import fk

/// The built `fk`, run as a process of its own.
enum FKProgram {
    struct Output {
        var status: Int32
        var output: String
        var errors: String
    }

    /// Beside the test bundle.
    static let path: String = {
        #if os(macOS)
            let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
            let folder = bundle?.deletingLastPathComponent() ?? Bundle.main.bundleURL
        #else
            let folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
                .deletingLastPathComponent()
        #endif
        return folder.appendingPathComponent("fk").path
    }()

    static func environment(_ own: [String: String]) -> [String: String] {
        let inherited = ProcessInfo.processInfo.environment
        var environment = ["PATH": inherited["PATH"] ?? "/usr/bin:/bin", "HOME": inherited["HOME"] ?? "/"]
        for name in ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] { environment[name] = inherited[name] }
        return environment.merging(own) { $1 }
    }

    /// Runs it to its end.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], folder: String? = nil
    ) async throws -> Output {
        try await run(path, arguments, environment: environment, folder: folder)
    }

    /// The same for any program. Waits on a thread of its own: all tests share the few of Swift's pool.
    static func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil
    ) async throws -> Output {
        try await offPool { try wait(for: program, arguments, environment: environment, folder: folder) }
    }

    /// The same; blocks the calling thread.
    static func wait(
        for program: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil
    ) throws -> Output {
        // Files and not pipes: both streams may be long, and no thread is needed to drain them.
        let scratch = try TemporaryFolder()
        let status = try ChildProcess(
            [program] + arguments, environment: Self.environment(environment), folder: folder,
            output: .file("\(scratch.path)/out"), errors: .file("\(scratch.path)/err")
        ).end()
        return Output(status: status, output: try scratch.text("out"), errors: try scratch.text("err"))
    }
}

extension TemporaryFolder {
    func fileHandle(_ name: String) throws -> FileHandle {
        try Data().write(to: URL(fileURLWithPath: "\(path)/\(name)"))
        return try FileHandle(forWritingTo: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    func text(_ name: String) throws -> String {
        try String(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"), encoding: .utf8)
    }

    func write(_ text: String, _ name: String) throws -> String {
        try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
        return "\(path)/\(name)"
    }
}
