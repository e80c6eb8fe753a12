import FKEngine

#if os(Linux) || os(macOS)
    import CSystem
    import FKCore
    import FKMiddleware
    import FKTransport
    import Foundation

    /// A model of the service that performs background downloads on Apple's systems, for tests. Each request is a process of its own,
    /// which runs the program `curl` and outlives the application. Finished files stay in a folder until a launch takes them.
    ///
    /// ```swift
    /// let system = SystemModel(folder: url)
    /// configure.background = system.session()
    /// ```
    ///
    /// Like the system it follows redirects by itself, hands over any status as a finished file, and removes the file after
    /// the callback. When no request is left in flight, it reports that all events were delivered.
    public final class SystemModel: Sendable {
        /// What the model does wrong with a piece, as the system may.
        package enum Fault: Sendable, Hashable, CaseIterable {
            /// It is delivered at the next launch.
            case late
            /// It is delivered now, and once more at the next launch.
            case twice
            /// The file is gone before the callback.
            case vanishes
            /// The file is cut, because the disk was full.
            case isCut
            /// The request fails.
            case fails
        }

        private let folder: URL
        private let fault: @Sendable (PieceKey) -> Fault?

        /// Creates the model of one system. Another process with the same folder has the same system.
        public convenience init(folder: URL) { self.init(folder: folder) { _ in nil } }

        /// - Parameter fault: called for each finished piece.
        package init(folder: URL, fault: @escaping @Sendable (PieceKey) -> Fault?) {
            self.folder = folder
            self.fault = fault
        }

        /// A session for `Configure.background`. Its name is part of the folder's layout: letters, digits, `-` and `.`.
        public func session(identifier: String = "model") -> BackgroundSession {
            var session = BackgroundSession(identifier: identifier)
            let place = folder.appendingPathComponent(identifier)
            session.makeTransport = { [fault] session, _ in
                ModelTransport(session.identifier, ModelSpool(place), fault)
            }
            return session
        }

        /// True if no request is in flight.
        public var isIdle: Bool { spools.allSatisfy { spool in spool.pieces().allSatisfy { spool.isFinished($0) } } }

        /// Ends all requests, as the system does when the user closes the application by hand. The next launch hears of it.
        public func forceQuit() {
            for spool in spools {
                for piece in spool.pieces() where !spool.isFinished(piece) { spool.end(piece, removes: false) }
            }
        }

        private var spools: [ModelSpool] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            return names.map { ModelSpool(folder.appendingPathComponent($0)) }
        }
    }

    /// The folders of the requests of a session: `<key>~<number>/` with `request`, `pid`, `head`, `body`, and at the end `code`.
    private struct ModelSpool: Sendable {
        struct Piece: Sendable, Hashable {
            var key: PieceKey
            var folder: String
        }

        let root: String

        init(_ root: URL) { self.root = root.path }

        func pieces() -> [Piece] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
            return names.sorted().compactMap { name in
                guard let key = PieceKey(String(name.prefix { $0 != "~" })), name.contains("~") else { return nil }
                return Piece(key: key, folder: "\(root)/\(name)")
            }
        }

        func text(_ name: String, of piece: Piece) -> String? {
            try? String(contentsOfFile: "\(piece.folder)/\(name)", encoding: .isoLatin1)
        }

        func isFinished(_ piece: Piece) -> Bool { text("code", of: piece) != nil }

        /// The request is made under another name, and the script gives it its own: a killed application leaves a request that
        /// runs, or none.
        private static let script = """
            mv "$0" "$1" && cd "$1" || exit 1
            (curl -q -K request -s -S -L -D head -o body 2>errors & echo $! >pid; wait $!; echo $? >code.new; mv code.new code) &
            """

        func start(_ request: URLRequest, _ key: PieceKey) throws {
            let number = UUID().uuidString
            let (new, name) = ("\(root)/.\(number)", "\(root)/\(key)~\(number)")
            try FileManager.default.createDirectory(atPath: new, withIntermediateDirectories: true)
            func quoted(_ text: String) -> String {
                "\"" + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
                    + "\""
            }
            var lines = ["url = \(quoted(request.url?.absoluteString ?? ""))", "noproxy = \"*\""]
            for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
                lines.append("header = \(quoted("\(name): \(value)"))")
            }
            try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: new + "/request"))
            let null = open("/dev/null", O_RDWR | O_CLOEXEC)
            let high = [null, null, null].map { fcntl($0, F_DUPFD_CLOEXEC, 3) }
            defer { for descriptor in high + [null] { close(descriptor) } }
            var pid: pid_t = 0
            let code = CStrings.with(["sh", "-c", Self.script, new, name]) { arguments in
                CStrings.with(["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"]) {
                    fk_spawn(&pid, "/bin/sh", arguments, $0, root, high)
                }
            }
            guard code == 0 else { throw DownloadError(.disk, "The model cannot start a program.") }
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        }

        func end(_ piece: Piece, removes: Bool) {
            if let pid = text("pid", of: piece).flatMap({ pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }) {
                kill(pid, SIGKILL)
            }
            if removes { remove(piece) } else { write("143", "code", of: piece) }
        }

        func write(_ text: String, _ name: String, of piece: Piece) {
            try? Data(text.utf8).write(to: URL(fileURLWithPath: "\(piece.folder)/\(name)"))
        }

        func remove(_ piece: Piece) {
            let gone = "\(root)/.gone-\(UUID().uuidString)"
            guard (try? FileManager.default.moveItem(atPath: piece.folder, toPath: gone)) != nil else { return }
            try? FileManager.default.removeItem(atPath: gone)
        }

        /// The head of the last response.
        func head(of piece: Piece) -> ResponseHead? {
            guard let text = text("head", of: piece), let request = url(of: piece) else { return nil }
            var blocks = text.replacingOccurrences(of: "\r\n", with: "\n").components(separatedBy: "\n\n")
                .filter { $0.hasPrefix("HTTP/") }
            blocks.removeAll { $0.split(separator: " ").dropFirst().first?.hasPrefix("1") == true }
            guard let last = blocks.last else { return nil }
            var lines = last.split(separator: "\n")
            let words = lines.removeFirst().split(separator: " ")
            guard words.count > 1, let status = Int(words[1]) else { return nil }
            let fields = lines.compactMap { line -> HeaderField? in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                return HeaderField(String(line[..<colon]), value)
            }
            return ResponseHead(
                status: status, httpVersion: String(words[0].dropFirst(5)), fields: fields, url: request,
                redirects: blocks.count - 1)
        }

        private func url(of piece: Piece) -> String? {
            text("request", of: piece)?.split(separator: "\n").first.map { String($0.dropFirst(7).dropLast()) }
        }
    }

    /// The application's side of the model.
    private final class ModelTransport: FileTransport {
        private struct State {
            var report: (@Sendable (FileTransportEvent) -> Void)?
            /// Delivered at the next launch.
            var postponed: Set<ModelSpool.Piece> = []
            var isFlying = false
            var isWatching = false
        }

        private let identifier: String
        private let spool: ModelSpool
        private let fault: @Sendable (PieceKey) -> SystemModel.Fault?
        private let state = Locked(State())
        private let queue = DispatchQueue(label: "fk.system")

        init(_ identifier: String, _ spool: ModelSpool, _ fault: @escaping @Sendable (PieceKey) -> SystemModel.Fault?) {
            self.identifier = identifier
            self.spool = spool
            self.fault = fault
        }

        func refusal(of request: TransportRequest) -> DownloadError? {
            request.urlRequest.httpMethod ?? "GET" == "GET"
                ? nil : DownloadError(.invalidArgument, "Only GET requests.")
        }

        func adopt(_ report: @escaping @Sendable (FileTransportEvent) -> Void) {
            state.withLock { $0.report = report }
            queue.async { [self] in
                let pieces = spool.pieces()
                report(.adopted(Set(pieces.map(\.key))))
                state.withLock { $0.isFlying = !pieces.isEmpty }
                deliver()
            }
        }

        func start(_ request: TransportRequest, piece: PieceKey) {
            queue.async { [self] in
                do {
                    try spool.start(request.urlRequest, piece)
                    state.withLock { $0.isFlying = true }
                    watch()
                } catch {
                    let error = DownloadError(
                        wrapping: error, code: .disk, message: "The model cannot start a request.")
                    state.withLock(\.report)?(.failed(piece, error))
                }
            }
        }

        func cancel(_ pieces: Set<PieceKey>) {
            queue.async { [self] in
                for piece in spool.pieces() where pieces.contains(piece.key) { spool.end(piece, removes: true) }
            }
        }

        func leave() { state.withLock { $0.report = nil } }

        // MARK: The queue

        private func watch() {
            let isFirst = state.withLock { state in
                defer { state.isWatching = true }
                return !state.isWatching && state.report != nil
            }
            guard isFirst else { return }
            queue.asyncAfter(deadline: .now() + .milliseconds(3)) { [weak self] in
                self?.state.withLock { $0.isWatching = false }
                self?.deliver()
            }
        }

        /// Delivers what has finished. When nothing is in flight any more, the application has all.
        private func deliver() {
            let postponed = state.withLock(\.postponed)
            var isFlying = false
            for piece in spool.pieces() where !postponed.contains(piece) {
                guard let report = state.withLock(\.report) else { return }
                if spool.isFinished(piece) { deliver(piece, report) } else { isFlying = true }
            }
            let hasAll = state.withLock { state in
                defer { state.isFlying = isFlying }
                return state.isFlying && !isFlying
            }
            if hasAll { state.withLock(\.report)?(.allDelivered(identifier: identifier)) }
            if isFlying { watch() }
        }

        private func deliver(_ piece: ModelSpool.Piece, _ report: @Sendable (FileTransportEvent) -> Void) {
            let wasFaulty = spool.text("fault", of: piece) != nil
            let fault = wasFaulty ? nil : fault(piece.key)
            let body = "\(piece.folder)/body"
            if fault != nil { spool.write("", "fault", of: piece) }
            switch fault {
            case .late:
                state.withLock { _ = $0.postponed.insert(piece) }
                return
            case .twice:
                let copy = ModelSpool.Piece(key: piece.key, folder: "\(spool.root)/\(piece.key)~\(UUID().uuidString)")
                // Under another name first: a killed application leaves no half of it.
                let new = "\(spool.root)/.\(UUID().uuidString)"
                if (try? FileManager.default.copyItem(atPath: piece.folder, toPath: new)) != nil,
                    (try? FileManager.default.moveItem(atPath: new, toPath: copy.folder)) != nil
                {
                    state.withLock { _ = $0.postponed.insert(copy) }
                }
            case .vanishes: try? FileManager.default.removeItem(atPath: body)
            case .isCut: truncate(body, 1_000)
            case .fails, nil: break
            }
            let code = spool.text("code", of: piece)?.trimmingCharacters(in: .whitespacesAndNewlines)
            if code == "0", fault != .fails, let head = spool.head(of: piece) {
                // A body without a byte has no file with curl.
                if fault != .vanishes, !FileManager.default.fileExists(atPath: body), !wasFaulty {
                    spool.write("", "body", of: piece)
                }
                report(.finished(piece.key, head, file: body))
            } else {
                // The shell's code for a program that is not there.
                let error =
                    code == "127"
                    ? DownloadError(.invalidArgument, "The model of a system needs the program curl: install it.")
                    : DownloadError(.connectionLost, "The system has ended the download.", isRetryable: true)
                report(.failed(piece.key, error))
            }
            spool.remove(piece)
        }
    }
#endif
