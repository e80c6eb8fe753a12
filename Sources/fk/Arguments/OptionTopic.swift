/// The headings under which the help and the manual page list the options of a command, in their order.
enum OptionTopic: Sendable, Hashable, CaseIterable {
    /// Options of a command that has few.
    case general
    case files
    case speed
    case network
    case security
    case background
    case shards

    var title: String {
        switch self {
        case .general: "Options"
        case .files: "Files"
        case .speed: "Speed"
        case .network: "Network"
        case .security: "Security"
        case .background: "Background"
        case .shards: "Many machines"
        }
    }

    /// The options by heading, without empty headings. The order within a heading stays.
    static func sections(_ options: [OptionSpec]) -> [(topic: Self, options: [OptionSpec])] {
        allCases.map { topic in (topic, options.filter { $0.topic == topic }) }.filter { !$0.options.isEmpty }
    }
}
