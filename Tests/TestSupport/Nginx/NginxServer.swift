import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A real nginx on free ports of 127.0.0.1, with plain HTTP/1.1 and with TLS and HTTP/2, for one test. Stops with the
/// last reference to it.
///
/// | path | answers |
/// | --- | --- |
/// | `/…` | the files in `root`, with ranges, ETag and Last-Modified |
/// | `/slow/…` | the same files at `slowRate` bytes a second |
/// | `/redirect?to=URL` | 302 to the text after `to=`, as it stands |
/// | `/upstream/…` | what the server at `upstream` says, without a length and closed at the end |
package final class NginxServer: Sendable {
    package struct LogEntry: Sendable, Equatable {
        package var method: String
        package var uri: String
        /// `HTTP/1.1` or `HTTP/2.0`.
        package var version: String
        package var status: Int
        package var bodyBytesSent: Int
        /// The Range field; nil when there was none.
        package var range: String?
        /// Requests with the same number shared a connection.
        package var connection: Int
    }

    package let folder: TemporaryFolder
    package let certificates: TestCertificates
    package let port: UInt16
    package let tlsPort: UInt16

    package var base: String { "http://127.0.0.1:\(port)" }
    package var tlsBase: String { "https://127.0.0.1:\(tlsPort)" }
    /// The folder that is served.
    package var root: URL { folder.file("root") }

    /// - Parameters:
    ///   - certificate: what the TLS port shows.
    ///   - slowRate: bytes a second of `/slow/`.
    ///   - upstream: a port on 127.0.0.1 that `/upstream/` leads to.
    ///   - extra: more directives for both servers.
    /// - Throws: when nginx or openssl is missing or nginx does not start.
    package init(
        certificate: TestCertificates.Kind = .good, slowRate: Int = 100_000, upstream: UInt16? = nil, extra: String = ""
    ) throws {
        folder = try TemporaryFolder()
        certificates = try TestCertificates(kinds: [certificate])
        try FileManager.default.createDirectory(at: folder.file("root"), withIntermediateDirectories: true)
        var attempt = 1
        while true {
            // Between finding a port and nginx taking it, another program may; then others are tried.
            let free = try Socket.freePorts(2)
            let ports = (free[0], free[1])
            let configuration = Self.configuration(
                folder: folder.path, certificates, certificate, ports, slowRate: slowRate, upstream: upstream,
                extra: extra)
            try folder.write(Array(configuration.utf8), to: "nginx.conf")
            do {
                // It returns once the ports are open: nothing has to be waited for.
                try Program.run("nginx", ["-c", folder.file("nginx.conf").path, "-p", folder.path, "-e", "error.log"])
                (port, tlsPort) = ports
                return
            } catch let failure as Program.Failure where failure.description.contains("in use") && attempt < 5 {
                attempt += 1
            }
        }
    }

    deinit { stop() }

    /// Ends all connections. Called by itself in the end.
    package func stop() {
        guard let text = try? folder.read("nginx.pid"),
            let pid = pid_t(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            pid > 1
        else { return }
        kill(pid, SIGTERM)
        try? FileManager.default.removeItem(at: folder.file("nginx.pid"))
    }

    /// Puts a file into `root`.
    package func write(_ bytes: [UInt8], to name: String) throws {
        try folder.write(bytes, to: "root/\(name)")
    }

    /// The requests that nginx has finished, in that order.
    package func log() throws -> [LogEntry] {
        guard FileManager.default.fileExists(atPath: folder.file("access.log").path) else { return [] }
        let lines = String(decoding: try folder.read("access.log"), as: UTF8.self).split(separator: "\n")
        return lines.compactMap { line in
            let words = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard words.count == 7, let status = Int(words[3]), let bytes = Int(words[4]),
                let connection = Int(words[6])
            else { return nil }
            return LogEntry(
                method: words[0], uri: words[1], version: words[2], status: status, bodyBytesSent: bytes,
                range: words[5] == "-" || words[5].isEmpty ? nil : words[5], connection: connection)
        }
    }

    /// The log once it has so many entries. nginx writes an entry a moment after the client has its last byte and tells
    /// nobody, so this looks again and again.
    package func log(atLeast count: Int) async throws -> [LogEntry] {
        let entries = try await eventually {
            let entries = try log()
            return entries.count >= count ? entries : nil
        }
        return try entries ?? log()
    }

    private static func configuration(
        folder: String, _ certificates: TestCertificates, _ kind: TestCertificates.Kind, _ ports: (UInt16, UInt16),
        slowRate: Int, upstream: UInt16?, extra: String
    ) -> String {
        let upstreamLocation =
            upstream.map {
                """
                location /upstream/ {
                    proxy_pass http://127.0.0.1:\($0)/; proxy_buffering off; chunked_transfer_encoding off;
                    keepalive_timeout 0;
                }
                """
            } ?? ""
        let shared = """
            root \(folder)/root;
            location /slow/ { alias \(folder)/root/; limit_rate \(slowRate); }
            location = /redirect { return 302 $arg_to; }
            \(upstreamLocation)
            \(extra)
            """
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/temp_\($0);" }.joined(separator: " ")
        return """
            \(geteuid() == 0 ? "user root;" : "")
            worker_processes 1;
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log;
            events { worker_connections 2048; }
            http {
                log_format test "$request_method\t$request_uri\t$server_protocol\t$status\t$body_bytes_sent\t$http_range\t$connection";
                access_log \(folder)/access.log test;
                \(temporary)
                sendfile on;
                keepalive_requests 100000;
                server { listen 127.0.0.1:\(ports.0); \(shared) }
                server {
                    listen 127.0.0.1:\(ports.1) ssl http2;
                    ssl_certificate \(certificates.certificate(kind));
                    ssl_certificate_key \(certificates.key(kind));
                    \(shared)
                }
            }
            """
    }
}
