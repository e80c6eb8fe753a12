import Foundation

#if canImport(Darwin)
    import Darwin
#endif

/// Identifies the current boot of the machine, to decide whether data that was written but not synced can still be
/// trusted.
package enum BootID {
    /// The id of the current boot, read once per process. `FK_BOOT_ID` in the environment overrides it, for tests of
    /// power cuts.
    package static let current: String = read(environment: ProcessInfo.processInfo.environment)

    /// The start of the current boot. With `FK_BOOT_ID` it is the start of this process.
    package static let began: Date = {
        if ProcessInfo.processInfo.environment["FK_BOOT_ID"]?.isEmpty == false { return Date() }
        return Date(timeIntervalSinceNow: -uptime)
    }()

    /// The seconds since the start of the boot, including sleep if the system counts it.
    private static var uptime: Double {
        #if canImport(Darwin)
            var boot = timeval()
            var size = MemoryLayout<timeval>.size
            guard sysctlbyname("kern.boottime", &boot, &size, nil, 0) == 0 else { return 0 }
            return Date().timeIntervalSince1970 - Double(boot.tv_sec)
        #else
            var time = timespec()
            guard clock_gettime(CLOCK_BOOTTIME, &time) == 0 else { return 0 }
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        #endif
    }

    /// Never empty. A system without a boot id gets a random one, which matches nothing. Unsynced data is then never
    /// trusted, which is safe.
    package static func read(environment: [String: String]) -> String {
        if let id = environment["FK_BOOT_ID"], !id.isEmpty { return id }
        return system() ?? UUID().uuidString.lowercased()
    }

    private static func system() -> String? {
        #if canImport(Darwin)
            var buffer = [CChar](repeating: 0, count: 64)
            var size = buffer.count
            guard sysctlbyname("kern.bootsessionuuid", &buffer, &size, nil, 0) == 0 else { return nil }
            let id = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #else
            // A file in /proc reports no size, so it is read up to a limit.
            guard let handle = FileHandle(forReadingAtPath: "/proc/sys/kernel/random/boot_id"),
                let data = try? handle.read(upToCount: 128)
            else { return nil }
            let id = String(decoding: data.prefix { $0 > 0x20 }, as: UTF8.self)
        #endif
        return id.isEmpty ? nil : id
    }
}
