import FKMiddleware
import Foundation

/// Finds a program. The system's own search would use the present folder of this process.
enum ProgramPath {
    /// The folders of `PATH`, or the system's usual ones if it is not set.
    static var searched: String { ProcessInfo.processInfo.environment["PATH"].flatMap(nonEmpty) ?? "/usr/bin:/bin" }

    private static func nonEmpty(_ text: String) -> String? { text.isEmpty ? nil : text }

    /// The absolute path of a program.
    ///
    /// - Parameters:
    ///   - name: a path, or a name without a slash to look up in `path`.
    ///   - directory: the folder that a relative path starts from.
    ///   - path: folders, separated by colons. Only absolute ones are searched.
    /// - Throws: `.middleware` with the reason.
    static func find(_ name: String, from directory: String, path: String) throws(DownloadError) -> String {
        if let fault = OtherPrograms.fault { throw DownloadError(.middleware, "\(name) cannot run: \(fault)") }
        if name.utf8.contains(UInt8(ascii: "/")) {
            let place = name.utf8.first == UInt8(ascii: "/") ? name : "\(directory)/\(name)"
            if let fault = fault(of: place) { throw DownloadError(.middleware, fault) }
            return place
        }
        var firstFault: String?
        for folder in path.split(separator: ":") where folder.utf8.first == UInt8(ascii: "/") {
            let place = "\(folder)/\(name)"
            guard let fault = fault(of: place) else { return place }
            if errno != ENOENT, firstFault == nil { firstFault = fault }
        }
        throw DownloadError(
            .middleware, firstFault ?? "there is no program \(name) in the folders of PATH, \(path)")
    }

    /// The reason why the file cannot be run; nil if it can. `errno` is ENOENT for a missing one.
    private static func fault(of path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT || errno == ENOTDIR
                ? "there is no program \(path)" : "\(path) cannot be looked at: \(String(cString: strerror(errno)))"
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            errno = EACCES
            return "\(path) is not a file"
        }
        guard access(path, X_OK) == 0 else {
            let code = errno
            defer { errno = code }
            return "\(path) is not executable; run: chmod +x \(path.shellWord)"
        }
        return nil
    }

    /// The system's reason for not starting a program that exists.
    static func reason(_ code: Int32, _ path: String, directory: String) -> String {
        switch code {
        case ENOENT, ENOTDIR:
            access(directory, X_OK) == 0
                ? "the interpreter in the first line of \(path) is missing"
                : "the folder \(directory) that it runs in is missing"
        case ENOEXEC: "\(path) is neither a program nor a script with an interpreter in its first line (#!)"
        case ETXTBSY: "\(path) is open for writing, so it cannot be run now"
        default: "\(path) could not be started: \(String(cString: strerror(code)))"
        }
    }
}

/// The whole environment of a program.
enum ProgramEnvironment {
    /// The inherited variables, with the values of those that are not set.
    static var inherited: [(name: String, value: String)] {
        let own = ProcessInfo.processInfo.environment
        let defaults = [
            ("PATH", "/usr/bin:/bin"), ("HOME", NSHomeDirectory()), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp"),
        ]
        return defaults.map { name, value in (name, own[name].flatMap { $0.isEmpty ? nil : $0 } ?? value) }
    }

    /// `NAME=value` of all variables: FK_STAGE, FK_TASK_ID, PATH, HOME, LANG and TMPDIR.
    static func variables(
        _ stage: MiddlewareProgram.Stage, _ id: String, inherited: [(name: String, value: String)]
    ) -> [String] {
        ["FK_STAGE=\(stage.rawValue)", "FK_TASK_ID=\(id)"] + inherited.map { "\($0.name)=\($0.value)" }
    }
}
