import Foundation

/// The capabilities of an output stream.
struct Terminal: Sendable, Hashable {
    struct Size: Sendable, Hashable {
        var columns: Int
        var rows: Int
    }

    var descriptor: Int32
    var isTerminal: Bool
    var usesColor: Bool
    /// False if the locale is not UTF-8. Bars and marks are then drawn with ASCII.
    var usesUnicode: Bool
    /// True if lines can be redrawn: the terminal supports cursor movement.
    var canMoveCursor: Bool
    /// True if the terminal is known to show a frame at once between `CSI ?2026 h` and `CSI ?2026 l`.
    var synchronizes: Bool

    init(descriptor: Int32, color: ColorChoice, environment: [String: String]) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        let kind = environment["TERM"] ?? ""
        let isDumb = kind.isEmpty || kind == "dumb"
        canMoveCursor = isTerminal && !isDumb
        usesColor = Self.usesColor(color, isTerminal: isTerminal, isDumb: isDumb, noColor: environment["NO_COLOR"])
        usesUnicode = Self.usesUnicode(environment)
        synchronizes = canMoveCursor && Self.synchronizes(environment)
    }

    /// Decides by the names that terminals with synchronized updates give themselves.
    static func synchronizes(_ environment: [String: String]) -> Bool {
        let kind = environment["TERM"] ?? ""
        let kinds = ["xterm-kitty", "xterm-ghostty", "foot", "alacritty", "contour", "wezterm", "tmux"]
        if kinds.contains(where: kind.hasPrefix) { return true }
        let programs = ["iTerm.app", "WezTerm", "ghostty", "vscode", "mintty", "rio", "WarpTerminal"]
        if let program = environment["TERM_PROGRAM"], programs.contains(program) { return true }
        return environment["WT_SESSION"] != nil || environment["KONSOLE_VERSION"] != nil
    }

    /// Decides about colours. `NO_COLOR` applies if it is set and not empty (no-color.org); `always` overrides it.
    static func usesColor(_ choice: ColorChoice, isTerminal: Bool, isDumb: Bool, noColor: String?) -> Bool {
        switch choice {
        case .always: true
        case .never: false
        case .auto: isTerminal && !isDumb && (noColor ?? "").isEmpty
        }
    }

    /// Decides by the first of LC_ALL, LC_CTYPE and LANG that is set, as in C. Without any of them it assumes UTF-8.
    static func usesUnicode(_ environment: [String: String]) -> Bool {
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            guard let value = environment[name]?.lowercased(), !value.isEmpty else { continue }
            return value.contains("utf-8") || value.contains("utf8")
        }
        return true
    }

    /// The current size; 80 x 24 if the system does not report it. Every frame reads it (0.3 µs), so no SIGWINCH
    /// handler is necessary.
    var size: Size {
        var window = winsize()
        guard isTerminal, ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0 else { return Size(columns: 80, rows: 24) }
        return Size(
            columns: window.ws_col > 0 ? Int(window.ws_col) : 80, rows: window.ws_row > 0 ? Int(window.ws_row) : 24)
    }
}

enum Style: String, Sendable {
    case bold = "1"
    case dim = "2"
    case reverse = "7"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"

    /// The text in this style; unchanged if `on` is false or the text is empty.
    func callAsFunction(_ text: String, _ on: Bool) -> String {
        on && !text.isEmpty ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text
    }

    /// The text without the codes that this type has added.
    static func removed(from text: String) -> String {
        guard text.utf8.contains(0x1b) else { return text }
        var plain = ""
        var rest = text[...]
        while let escape = rest.firstIndex(of: "\u{1b}") {
            plain += rest[..<escape]
            rest = rest[escape...].drop { $0 != "m" }.dropFirst()
        }
        return plain + rest
    }
}

enum ColorChoice: String, Sendable, CaseIterable {
    /// On a terminal that is not `dumb`, unless `NO_COLOR` is set.
    case auto
    case always
    case never
}
