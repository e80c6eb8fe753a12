import Foundation

/// What Apple's systems are told about a new work path and a published set. Folders and files in it inherit the protection class.
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

    /// The attributes of a published set, which can be downloaded again.
    ///
    /// - Parameter former: those of the set that it replaces, which somebody may have changed; nil if there is none.
    package static func wantedOfSet(replacing former: Set<Attribute>?, on system: System) -> Set<Attribute> {
        former ?? wanted(isNew: true, on: system)
    }

    /// The attributes that a folder has; empty on systems without them.
    package static func present(of folder: String) -> Set<Attribute> {
        var attributes: Set<Attribute> = []
        #if canImport(Darwin)
            let url = URL(fileURLWithPath: folder, isDirectory: true)
            if (try? url.resourceValues(forKeys: [.isExcludedFromBackupKey]))?.isExcludedFromBackup == true {
                attributes.insert(.excludedFromBackup)
            }
            #if !os(macOS)
                let found = try? FileManager.default.attributesOfItem(atPath: folder)
                if found?[.protectionKey] as? FileProtectionType == .completeUntilFirstUserAuthentication {
                    attributes.insert(.readableAfterFirstUnlock)
                }
            #endif
        #endif
        return attributes
    }

    /// Sets attributes, as far as the system has them. A failure has no effect on downloads.
    package static func set(_ attributes: Set<Attribute>, of folder: String) {
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
