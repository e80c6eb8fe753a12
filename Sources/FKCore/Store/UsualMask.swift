import Dispatch
import FKMiddleware
import Foundation

/// Tells whether new files of mode 0600 get that mode: whether the umask takes no permission from their owner. Almost every
/// umask is such a one, and setting the mode of each info file costs as much as writing it.
enum UsualMask {
    /// The nanoseconds for which an answer is trusted, because a process may change its umask at any time.
    private static let trust: UInt64 = 1_000_000_000
    private static let last = Locked<(keepsOwner: Bool, until: UInt64)>((false, 0))

    /// False also where the umask is unknown: it can be read without a change only on Linux.
    static var keepsOwner: Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        return last.withLock { last in
            if now >= last.until { last = (look(), now + trust) }
            return last.keepsOwner
        }
    }

    private static func look() -> Bool {
        #if os(Linux)
            // The line is `Umask:` and an octal number (proc(5), since Linux 4.7).
            guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return false }
            return keepsOwner(status: text)
        #else
            return false
        #endif
    }

    /// - Parameter status: the content of /proc/self/status.
    static func keepsOwner(status: String) -> Bool {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Umask:") }),
            let mask = Int(line.dropFirst(6).trimmingCharacters(in: .whitespaces), radix: 8)
        else { return false }
        return mask & 0o600 == 0
    }
}
