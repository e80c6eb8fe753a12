import FKEngine
import Foundation

/// The folders that an application asks for. An impossible one stays as it is, and adding refuses it by name.
extension TaskDescription {
    /// The absolute form of a path. A leading `~` is the home folder, `~name` another user's.
    static func directory(_ path: String) -> String {
        let path = path.utf8.first == UInt8(ascii: "~") ? (path as NSString).expandingTildeInPath : path
        return directoryFault(path) == nil ? ProcessInfo.absolute(path) ?? path : path
    }

    /// The path of a file URL; the text of any other, which is no path.
    package static func directory(_ url: URL) -> String {
        url.isFileURL ? directory(url.filePath) : url.absoluteString
    }
}
