/// Holds the options of a task, which most tasks do not have: nil takes one word instead of their size. Copies share the box.
package final class OptionsBox: Codable, Sendable, Hashable {
    /// The options. Another module reads one of them in place: a generic function took 5,000 instructions.
    package let value: TaskOptions
    /// True for options that need none of Foundation's coders. It is asked at each save.
    let isUsual: Bool

    private init(boxing value: TaskOptions) {
        self.value = value
        isUsual = value.isUsual
    }

    /// Boxes options; nil for options that say nothing.
    convenience init?(_ value: TaskOptions) {
        if value == TaskOptions() { return nil }
        self.init(boxing: value)
    }

    package convenience init(from decoder: any Decoder) throws { self.init(boxing: try TaskOptions(from: decoder)) }

    package func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

    /// Compares the options, not the boxes.
    package static func == (one: OptionsBox, other: OptionsBox) -> Bool { one === other || one.value == other.value }

    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension OptionsBox: UsualValue {
    func writeUsual(to text: inout JSONText) { value.writeUsual(to: &text) }
    static func readUsual(_ scanner: inout JSONScanner) throws -> OptionsBox {
        OptionsBox(boxing: try TaskOptions.readUsual(&scanner))
    }
}
