/// A graph of rates in one line, newest at the right.
enum RateGraph {
    private static let blocks: [Character] = Array("▁▂▃▄▅▆▇█")
    private static let letters: [Character] = Array("_.,:-=+*#")

    /// The last `columns` rates, scaled to the highest of them. Rates of 0 and missing ones are the lowest sign.
    static func text(_ rates: [Double], columns: Int, usesUnicode: Bool) -> String {
        guard columns > 0 else { return "" }
        let signs = usesUnicode ? blocks : letters
        let shown = rates.suffix(columns)
        let highest = shown.max() ?? 0
        let drawn = shown.map { rate -> Character in
            guard highest > 0, rate > 0 else { return signs[0] }
            return signs[min(signs.count - 1, 1 + Int(rate / highest * Double(signs.count - 2) + 0.5))]
        }
        return String(repeating: String(signs[0]), count: columns - shown.count) + String(drawn)
    }
}
