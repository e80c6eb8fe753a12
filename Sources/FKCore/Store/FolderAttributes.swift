import Foundation

/// What Apple's systems are told about a new work path. Folders and files in it inherit the protection class.
package enum FolderAttributes {
    /// An attribute of a folder.
    package enum Attribute: Sendable, Hashable {
        /// It is not part of backups: unfinished files can be fetched again.
        case excludedFromBackup
        /// Its files can be read after the first unlock: the system delivers while the device is locked.
        case readableAfterFirstUnlock
    }

    /// The systems that differ in the attributes of files.
    package enum System: Sendable, CaseIterable {
        case linux, macOS, device

        /// The system of this build.
        package static var current: System {
            #if os(macOS)
                .macOS
            #elseif canImport(Darwin)
                .device
            #else
                .linux
            #endif
        }
    }

    /// The attributes of a work path. One that existed before keeps the attributes that somebody gave it.
    package static func wanted(isNew: Bool, on system: System) -> Set<Attribute> {
        guard isNew else { return [] }
        return switch system {
        case .linux: []
        case .macOS: [.excludedFromBackup]
        case .device: [.excludedFromBackup, .readableAfterFirstUnlock]
        }
    }

    /// Sets attributes, as far as the system has them. A failure has no effect on downloads.
    static func set(_ attributes: Set<Attribute>, of folder: String) {
        #if canImport(Darwin)
            if attributes.contains(.excludedFromBackup) {
                var url = URL(fileURLWithPath: folder, isDirectory: true)
                var values = URLResourceValues()
                values.isExcludedFromBackup = true
                try? url.setResourceValues(values)
            }
            #if !os(macOS)
                if attributes.contains(.readableAfterFirstUnlock) {
                    let values: [FileAttributeKey: Any] = [
                        .protectionKey: FileProtectionType.completeUntilFirstUserAuthentication
                    ]
                    try? FileManager.default.setAttributes(values, ofItemAtPath: folder)
                }
            #endif
        #endif
    }
}
