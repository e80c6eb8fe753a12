import FKManifests
import FKMiddleware
import Foundation

/// Decides which names of a server's list are taken. Files whose names begin with a dot steer programs in a home folder:
/// `.bashrc`, `.ssh/config`.
struct HiddenNames: Sendable {
    enum Rule: Sendable, Hashable {
        /// Every name is taken: in a list of the owner, or with `--hidden`.
        case taken
        /// Such a name is left out in a home folder and above one.
        case notAtHome
        /// Such a name is left out everywhere: the command names one file and expects no other.
        case never
    }

    private let rule: Rule
    /// The home folders that the folder is, or contains.
    private let homes: [String]
    private let folder: String

    /// - Parameters:
    ///   - folder: the folder of the list's files, as an absolute path.
    ///   - homes: the home folders, as absolute paths.
    init(_ rule: Rule, in folder: String, homes: [String]) {
        self.rule = rule
        self.folder = EntryFolders.resolved(folder)
        let root = self.folder
        self.homes = rule == .taken ? [] : homes.map(EntryFolders.resolved).filter { Paths.isBelow($0, root) }
    }

    /// True if the folder is a home folder, or contains one.
    var isAtHome: Bool { !homes.isEmpty }

    /// True if a file is left out.
    ///
    /// - Parameter place: the absolute path of the file's folder, with its symbolic links resolved; nil for the folder itself.
    func leavesOut(_ name: String, in place: String?) -> Bool {
        guard rule != .taken else { return false }
        if isHidden(name), rule == .never || !homes.isEmpty { return true }
        let path = "\(place ?? folder)/\(Paths.split(name).name)"
        return homes.contains { home in
            let root = home.hasSuffix("/") ? home : home + "/"
            return path.utf8.starts(with: root.utf8) && isHidden(String(path.utf8.dropFirst(root.utf8.count)) ?? "")
        }
    }

    private func isHidden(_ name: String) -> Bool { name.utf8.first == UInt8(ascii: ".") }

    /// The home folders of the user: `HOME`, and the system's.
    static func homes(in environment: [String: String]) -> [String] {
        var homes: [String] = []
        if let home = environment["HOME"], home.utf8.first == UInt8(ascii: "/") { homes.append(home) }
        if let entry = getpwuid(getuid()), let text = entry.pointee.pw_dir {
            let home = String(cString: text)
            if home.utf8.first == UInt8(ascii: "/"), !homes.contains(home) { homes.append(home) }
        }
        return homes
    }
}
