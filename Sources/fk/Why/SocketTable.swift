import Foundation

/// The TCP connections of a process with the figures of the system (`TCP_INFO`), asked for over netlink. Only Linux has it.
enum SocketTable {
    typealias Connection = Bottleneck.Measures.Connection

    /// The established connections of a process by the numbers of their sockets; nil if the system does not tell.
    static func connections(of pid: Int32) -> [UInt32: Connection]? {
        #if os(Linux)
            let own = sockets(of: pid)
            guard !own.isEmpty else { return nil }
            var found: [UInt32: Connection] = [:]
            for family in [UInt8(AF_INET), UInt8(AF_INET6)] {
                guard let messages = ask(family) else { return nil }
                for (inode, connection) in messages where own.contains(inode) { found[inode] = connection }
            }
            return found
        #else
            return nil
        #endif
    }

    #if os(Linux)
        /// The numbers of the sockets that a process has open.
        private static func sockets(of pid: Int32) -> Set<UInt32> {
            let folder = "/proc/\(pid)/fd"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return Set(
                names.compactMap { name in
                    let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
                    guard let target, target.hasPrefix("socket:[") else { return nil }
                    return UInt32(target.dropFirst(8).dropLast())
                })
        }

        /// All established connections of a family (sock_diag(7)).
        private static func ask(_ family: UInt8) -> [(UInt32, Connection)]? {
            // NETLINK_SOCK_DIAG is 4.
            let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 4)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            // nlmsghdr (16 bytes) and inet_diag_req_v2 (56 bytes).
            var request = [UInt8](repeating: 0, count: 72)
            request.withUnsafeMutableBytes { bytes in
                bytes.storeBytes(of: 72, as: UInt32.self)
                bytes.storeBytes(of: 20, toByteOffset: 4, as: UInt16.self)  // SOCK_DIAG_BY_FAMILY
                bytes.storeBytes(of: 0x301, toByteOffset: 6, as: UInt16.self)  // NLM_F_REQUEST | NLM_F_DUMP
                bytes[16] = family
                bytes[17] = UInt8(IPPROTO_TCP)
                bytes[18] = 2  // INET_DIAG_INFO
                bytes.storeBytes(of: 2, toByteOffset: 20, as: UInt32.self)  // TCP_ESTABLISHED
            }
            guard send(descriptor, request, request.count, 0) == request.count else { return nil }
            var found: [(UInt32, Connection)] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count >= 16 else { return nil }
                let isDone = buffer[..<count].withUnsafeBytes { read($0, into: &found) }
                if let isDone { return isDone ? found : nil }
            }
        }

        /// - Returns: true at the end, false after an error, nil if more follows.
        private static func read(_ bytes: UnsafeRawBufferPointer, into found: inout [(UInt32, Connection)]) -> Bool? {
            var start = 0
            while start + 16 <= bytes.count {
                let length = Int(bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self))
                let kind = bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt16.self)
                if kind == 3 { return true }
                guard kind == 20, length >= 88, start + length <= bytes.count else { return false }
                if let entry = entry(UnsafeRawBufferPointer(rebasing: bytes[start + 16..<start + length])) {
                    found.append(entry)
                }
                start += (length + 3) & ~3
            }
            return nil
        }

        /// Reads an inet_diag_msg (72 bytes) and its attributes.
        private static func entry(_ bytes: UnsafeRawBufferPointer) -> (UInt32, Connection)? {
            let inode = bytes.loadUnaligned(fromByteOffset: 68, as: UInt32.self)
            var place = 72
            while place + 4 <= bytes.count {
                let length = Int(bytes.loadUnaligned(fromByteOffset: place, as: UInt16.self))
                guard length >= 4, place + length <= bytes.count else { return nil }
                if bytes.loadUnaligned(fromByteOffset: place + 2, as: UInt16.self) == 2 {
                    let info = UnsafeRawBufferPointer(rebasing: bytes[place + 4..<place + length])
                    var connection = connection(info)
                    connection.unread = Int64(bytes.loadUnaligned(fromByteOffset: 56, as: UInt32.self))
                    return (inode, connection)
                }
                place += (length + 3) & ~3
            }
            return nil
        }

        /// The members of `tcp_info` by their offsets, which are the same on every Linux. Older systems have fewer.
        private static func connection(_ info: UnsafeRawBufferPointer) -> Connection {
            func word(_ offset: Int) -> Int64 {
                offset + 4 <= info.count ? Int64(info.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) : 0
            }
            var connection = Connection()
            // The receiver's own estimate, if it has one: a receiver sends little.
            let received = word(92)
            connection.roundTrip = Double(received > 0 ? min(received, max(word(68), 1)) : word(68)) / 1e6
            connection.leastRoundTrip = word(148) == 0xffff_ffff ? 0 : Double(word(148)) / 1e6
            connection.window = max(word(64), word(96))
            connection.packets = word(152)
            connection.disordered = word(224)
            return connection
        }
    #endif
}
