import FKCore
import FKMiddleware
import Foundation

/// The full screen of `fk watch`: reads keys, applies events to a `WatchModel`, writes the differences between two frames, and
/// performs the model's effects. All of it happens on one thread.
final class WatchScreen: Sendable {
    /// What the thread hears from outside.
    enum Message: Sendable {
        case event(WatchSession.Event)
        case answer(EngineReply)
        case details(TaskID, [String])
        /// A signal, or the end of the session with its error.
        case end(status: Int32, DownloadError?)
    }

    private let terminal: Terminal
    private let output: OutputStream
    private let input: Int32
    private let runCommand: String
    private let messages = Locked<[Message]>([])
    private let wakeRead: Int32
    private let wakeWrite: Int32

    /// Performs an effect on another thread, which posts the result.
    typealias Perform = @Sendable (WatchModel.Effect) -> Void

    /// - Parameter runCommand: the command that starts an engine, to suggest it.
    init(terminal: Terminal, output: OutputStream, input: Int32, runCommand: String) {
        self.terminal = terminal
        self.output = output
        self.input = input
        self.runCommand = runCommand
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (wakeRead, wakeWrite) = (ends[0], ends[1])
    }

    deinit {
        close(wakeRead)
        close(wakeWrite)
    }

    /// Hands a message to the thread. Safe from any thread.
    func post(_ message: Message) {
        messages.withLock { $0.append(message) }
        var byte: UInt8 = 1
        _ = write(wakeWrite, &byte, 1)
    }

    /// Shows the screen until a key or a message ends it, and leaves the terminal as it was.
    ///
    /// - Returns: the exit status.
    /// - Throws: the error of the session.
    func run(_ perform: @escaping Perform) async throws -> Int32 {
        let result: Result<Int32, DownloadError> = await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: self.loop(perform)) }
            thread.name = "fk.watch"
            thread.start()
        }
        return try result.get()
    }

    private static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }
    /// The least time between two frames that no key asked for, in nanoseconds.
    private static let frameTime: Int64 = 100_000_000

    private func loop(_ perform: Perform) -> Result<Int32, DownloadError> {
        TerminalGuard.enter(.fullScreen, output: output.descriptor, input: input)
        defer { TerminalGuard.leave() }
        var model = WatchModel()
        var keys = WatchKeyParser()
        var drawn: [ScreenLine] = []
        var size = Terminal.Size(columns: 0, rows: 0)
        var lastFrame: Int64 = 0
        var lastLoad: Int64 = 0
        while true {
            let hasKeys = wait(milliseconds: keys.isPending ? 40 : 200)
            var typed: [WatchKey] = []
            if hasKeys {
                guard let bytes = readKeys() else { return .success(ExitStatus.done) }
                typed = keys.feed(bytes)
            } else if keys.isPending {
                typed = keys.flush()
            }
            for key in typed {
                for effect in model.handle(key, rows: terminal.size.rows) {
                    switch effect {
                    case .quit: return .success(ExitStatus.done)
                    case .redraw: drawn = []
                    case .request, .load, .limit, .start: perform(effect)
                    }
                }
            }
            for message in drainMessages() {
                switch message {
                case .event(let event): model.apply(event, time: Self.now)
                case .answer(let reply): model.answer(reply)
                case .details(let id, let lines): model.show(details: lines, of: id)
                case .end(let status, let error): return error.map { .failure($0) } ?? .success(status)
                }
            }
            let now = Self.now
            if case .details(let id) = model.page, now - lastLoad >= 1_000_000_000 {
                lastLoad = now
                perform(.load(id))
            }
            if TerminalGuard.drainContinued() { drawn = [] }
            guard TerminalGuard.isForeground(output.descriptor) else { continue }
            guard !typed.isEmpty || drawn.isEmpty || now - lastFrame >= Self.frameTime else { continue }
            lastFrame = now
            TerminalGuard.applyIfNeeded()
            draw(&model, &drawn, &size)
            if output.isBroken { return .success(ExitStatus.done) }
        }
    }

    private func draw(_ model: inout WatchModel, _ drawn: inout [ScreenLine], _ size: inout Terminal.Size) {
        let present = terminal.size
        let frame = WatchFrame(
            size: present, usesColor: terminal.usesColor, usesUnicode: terminal.usesUnicode, runCommand: runCommand,
            time: Self.now, now: Date())
        let lines = frame.lines(&model).map(ScreenLine.init)
        var text = ""
        if drawn.isEmpty || size != present {
            text = "\u{1b}[?7l\u{1b}[0m\u{1b}[H\u{1b}[2J"
            drawn = lines.map { _ in ScreenLine("") }
        }
        size = present
        for (row, (line, old)) in zip(lines, drawn).enumerated() {
            let change = line.text(over: old)
            if !change.isEmpty { text += "\u{1b}[\(row + 1);1H" + change }
        }
        drawn = lines
        guard !text.isEmpty else { return }
        output.write(terminal.synchronizes ? "\u{1b}[?2026h\(text)\u{1b}[?2026l" : text)
    }

    private func drainMessages() -> [Message] {
        messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }

    /// Waits for keys or a message. Returns true if there are keys.
    private func wait(milliseconds: Int32) -> Bool {
        var polled = [
            pollfd(fd: input, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeRead, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&polled, 2, milliseconds) > 0 else { return false }
        if polled[1].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 256)
            while read(wakeRead, &bytes, bytes.count) == bytes.count {}
        }
        return polled[0].revents != 0
    }

    /// The typed bytes; nil if the terminal is gone.
    private func readKeys() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1_024)
        let count = bytes.withUnsafeMutableBytes { Glue.read(input, $0) }
        return count > 0 ? Array(bytes[..<count]) : nil
    }
}
