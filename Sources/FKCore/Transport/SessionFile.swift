import FKMiddleware
import Foundation

/// The cookies of sessions that began at a login host (`TaskOptions.loginHost`), in Netscape's form. The file is in the work path, has
/// mode 0600, and is the only place that has them. Transfers with a login host send those that libcurl's rules allow.
///
/// It is read and changed in place under a lock of its own, so that processes do not lose each other's sessions. Every failure means
/// one more login: none is reported.
struct SessionFile {
    private let path: String
    private static let limit = 1 << 20
    private static let most = 1_000

    init(_ path: String) { self.path = path }

    /// The lines of the file; empty without one, and if others than its owner may read it.
    func cookies() -> [String] {
        locked(O_RDONLY, LOCK_SH) { Self.lines(of: $0) } ?? []
    }

    /// Keeps cookies, and drops others.
    ///
    /// - Parameters:
    ///   - lines: replace those of the same domain, path and name.
    ///   - ended: cookies that the server has taken back.
    func keep(_ lines: [String], ended: [String]) {
        if lines.isEmpty, ended.isEmpty { return }
        _ = locked(O_RDWR | O_CREAT, LOCK_EX) { file in
            let gone = Set((lines + ended).map(Self.key))
            let all = Self.lines(of: file).filter { !gone.contains(Self.key($0)) && !Self.isExpired($0) } + lines
            let bytes = Array((all.suffix(Self.most).joined(separator: "\n") + "\n").utf8)
            guard bytes.count <= Self.limit, ftruncate(file, 0) == 0 else { return }
            _ = pwrite(file, bytes, bytes.count, 0)
        }
    }

    /// What a transfer has changed: its new cookies, and those that it began with and that are gone.
    ///
    /// - Parameters:
    ///   - given: the lines that the transfer began with.
    ///   - now: its cookies at the end.
    static func changes(from given: [String], to now: [String]) -> (new: [String], ended: [String]) {
        let values = Set(given.map { key($0) + "\t" + value($0) })
        let keys = Set(now.map(key))
        return (now.filter { !values.contains(key($0) + "\t" + value($0)) }, given.filter { !keys.contains(key($0)) })
    }

    /// Domain, path and name: what identifies a cookie (RFC 6265 section 5.3).
    private static func key(_ line: String) -> String {
        let fields = fields(line)
        guard fields.count >= 6 else { return line }
        var domain = fields[0].lowercased()
        if domain.hasPrefix("#httponly_") { domain.removeFirst("#httponly_".count) }
        return [domain.hasPrefix(".") ? String(domain.dropFirst()) : domain, fields[2], fields[5]].joined(
            separator: "\t")
    }

    private static func value(_ line: String) -> String {
        let fields = fields(line)
        return fields.count >= 7 ? fields[6] : ""
    }

    private static func fields(_ line: String) -> [String] {
        line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    }

    private static func isExpired(_ line: String) -> Bool {
        let fields = fields(line)
        guard fields.count >= 6, let end = Double(fields[4]), end > 0 else { return false }
        return end < Date().timeIntervalSince1970
    }

    private static func lines(of file: Int32) -> [String] {
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = pread(file, &bytes, limit, 0)
        guard count > 0 else { return [] }
        return bytes.prefix(count).split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
            .filter { fields($0).count >= 6 }
    }

    /// A link, a device and a file of another user are left alone.
    private func locked<Value>(_ flags: Int32, _ lock: Int32, _ body: (Int32) -> Value) -> Value? {
        let file = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            return nil
        }
        if status.st_mode & 0o077 != 0, fchmod(file, 0o600) != 0 { return nil }
        while flock(file, lock) != 0, errno == EINTR {}
        return body(file)
    }
}
