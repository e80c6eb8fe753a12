/// The place of a state among all states of its task, for programs that hear of a task from two sources: the changes that
/// its engine reports, and its info file. Each source has the states in order, and one may be ahead of the other.
///
/// It is made of the submission number and of the generation of the info file: first the states before that generation was
/// written, then the record of that generation, then the states in the engine's memory until the next one is written. A task
/// that was forgotten and added again has a higher number, so its states come later.
package struct ChangeOrder: Sendable, Hashable, Codable {
    private let value: UInt64

    /// A state whose place is unknown. It counts as the newest.
    package static let unknown = ChangeOrder(value: 0)

    private init(value: UInt64) { self.value = value }

    /// Creates the place of a state.
    ///
    /// - Parameters:
    ///   - number: the submission number; at most 2^36 - 1 are told apart.
    ///   - generation: the generation of the info file that was read, or written last; at most 2^27 - 1 are told apart.
    ///   - isInMemory: true for a state of the engine, false for one that was read from the info file.
    package init(number: UInt64, generation: UInt64, isInMemory: Bool) {
        value =
            min(number, 1 << 36 - 1) << 28 | min(generation, 1 << 27 - 1) << 1 | (isInMemory ? 1 : 0)
    }

    /// True if a state at this place is older than one at another place, and so no news.
    package func isBefore(_ other: ChangeOrder) -> Bool { value != 0 && value < other.value }

    /// The later of two places; the other one if this is unknown.
    package func later(than other: ChangeOrder) -> ChangeOrder { value < other.value ? other : self }

    /// Decodes a place.
    ///
    /// - Throws: `DecodingError` if it is no number.
    package init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(UInt64.self)
    }

    /// Encodes the place as a number.
    ///
    /// - Throws: the encoder's error.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
