import Foundation

/// Tells whether new files of mode 0600 get that mode, because the umask removes no permission of the owner. This is true for
/// almost every umask. Setting the mode would add a fifth to the time of writing an info file.
package enum UsualMask {
    /// True if files that the calling thread creates now get mode 0600; false if the umask cannot be read without changing it.
    /// A call takes 20 us, so ask once for many files.
    package static var keepsOwner: Bool {
        #if os(Linux)
            // The line is `Umask:` and an octal number (proc(5), since Linux 4.7).
            guard let text = try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8) else {
                return false
            }
            return keepsOwner(status: text)
        #else
            return false
        #endif
    }

    /// The mode of a finished file: that of a file which a program creates for everyone under the umask of this process. It is read
    /// once.
    package static let finishedMode: mode_t = {
        #if os(Linux)
            let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            if let mask = status.flatMap(mask(status:)) { return 0o666 & ~mode_t(mask) }
        #endif
        // Reading it changes it for a moment. Files that are created meanwhile set their mode themselves.
        let mask = umask(0o077)
        umask(mask)
        return 0o666 & ~mask
    }()

    /// - Parameter status: the content of the status file of a thread.
    package static func keepsOwner(status: String) -> Bool { mask(status: status).map { $0 & 0o600 == 0 } ?? false }

    /// The umask in the status file of a thread or process; nil without one.
    private static func mask(status: String) -> Int? {
        // Bytes: with characters it took a fiftieth of a small file's time, although it is read once for 64 files.
        let name = "Umask:".utf8
        guard let line = status.utf8.split(separator: UInt8(ascii: "\n")).first(where: { $0.starts(with: name) }),
            let digits = line.dropFirst(name.count).split(whereSeparator: { $0 == 0x20 || $0 == 0x09 }).first,
            let mask = Int(Substring(digits), radix: 8)
        else { return nil }
        return mask
    }
}
