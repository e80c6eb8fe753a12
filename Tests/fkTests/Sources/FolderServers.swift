import TestSupport

@testable import fk

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A web server that lists folders, for one test. It stops with the last reference to it.
final class FolderServer: Sendable {
    /// The kinds that are tried. `.ci/needs test` installs nginx and Python; the others are left out where they are not there.
    enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case nginx, nginxJSON, python, apache, apacheTable, apacheDAV, lighttpd, caddy, rclone, rcloneDAV

        var description: String { rawValue }

        /// The program that is needed.
        var program: String {
            switch self {
            case .nginx, .nginxJSON: "nginx"
            case .python: "python3"
            case .apache, .apacheTable, .apacheDAV: "apache2"
            case .lighttpd: "lighttpd"
            case .caddy: "caddy"
            case .rclone, .rcloneDAV: "rclone"
            }
        }

        /// True if it is installed here.
        var isHere: Bool { Program.find(program) != nil }
    }

    /// A server that did not begin to listen.
    private struct NotUp: Error, CustomStringConvertible {
        let description: String
    }

    let base: String
    private let scratch: TemporaryFolder
    private let process: ChildProcess?
    private let nginx: NginxServer?

    /// Starts a server of that kind.
    ///
    /// - Parameter root: the folder that is served.
    init(_ kind: Kind, root: String) async throws {
        let scratch = try TemporaryFolder()
        self.scratch = scratch
        let port = try Socket.freePorts(1)[0]
        switch kind {
        case .nginx, .nginxJSON:
            let format = kind == .nginx ? "html" : "json"
            let server = try NginxServer(
                extra: "location /listed/ { alias \(root)/; autoindex on; autoindex_format \(format); }")
            nginx = server
            process = nil
            base = server.base + "/listed/"
            return
        default:
            nginx = nil
            base = "http://127.0.0.1:\(port)/"
            let words = try Self.words(kind, root: root, port: port, scratch)
            process = try ChildProcess(
                [Program.find(kind.program) ?? kind.program] + words,
                environment: ["PATH": "/usr/sbin:/usr/bin:/bin", "HOME": scratch.path, "LANG": "C.UTF-8"], folder: root,
                output: .file("\(scratch.path)/out"), errors: .file("\(scratch.path)/err"))
        }
        let isUp = try await eventually { await Self.answers(port) ? true : nil }
        guard isUp == true else { throw NotUp(description: "\(kind): \((try? scratch.text("err")) ?? "")") }
    }

    deinit {
        guard let process else { return }
        kill(process.pid, SIGKILL)
        _ = process.end()
    }

    private static func answers(_ port: UInt16) async -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func words(
        _ kind: Kind, root: String, port: UInt16, _ scratch: TemporaryFolder
    ) throws -> [String] {
        switch kind {
        case .nginx, .nginxJSON: return []
        case .python: return ["-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", root]
        case .caddy: return ["file-server", "--root", root, "--listen", "127.0.0.1:\(port)", "--browse"]
        case .rclone: return ["serve", "http", root, "--addr", "127.0.0.1:\(port)"]
        case .rcloneDAV: return ["serve", "webdav", root, "--addr", "127.0.0.1:\(port)"]
        case .lighttpd:
            let text = """
                server.document-root = "\(root)"
                server.port = \(port)
                server.bind = "127.0.0.1"
                server.modules = ("mod_dirlisting")
                dir-listing.activate = "enable"
                """
            return ["-D", "-f", try scratch.write(text, "lighttpd.conf")]
        case .apache, .apacheTable, .apacheDAV:
            let modules = ["mpm_event", "authz_core", "autoindex", "dir", "mime", "dav", "dav_fs"]
            let text =
                modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n")
                    + """

                    ServerRoot \(scratch.path)
                    ServerName localhost
                    PidFile \(scratch.path)/pid
                    ErrorLog \(scratch.path)/errors
                    Listen 127.0.0.1:\(port)
                    TypesConfig /etc/mime.types
                    DavLockDB \(scratch.path)/locks
                    DocumentRoot \(root)
                    <Directory \(root)>
                    Require all granted
                    Options Indexes
                    IndexOptions \(kind == .apache ? "FancyIndexing" : "FancyIndexing HTMLTable")
                    \(kind == .apacheDAV ? "Dav On" : "")
                    </Directory>
                    """
            return ["-DFOREGROUND", "-f", try scratch.write(text, "apache.conf")]
        }
    }
}
