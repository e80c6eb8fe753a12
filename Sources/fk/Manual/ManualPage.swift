import FKCore

/// The manual page fk(1). Commands and options come from the tables of the help.
enum ManualPage {
    /// - Parameter commands: in the order of the overview.
    static func text(_ commands: [CommandSpec], globalOptions: [OptionSpec]) -> String {
        let sections: [[String]] = [
            head, section("NAME", name), section("SYNOPSIS", synopsis),
            section("DESCRIPTION", ManualText.description.flatMap { [".Pp"] + Mdoc.paragraph($0) }.dropFirst()),
            section("COMMANDS", commands.flatMap(command)),
            section("OPTIONS OF EVERY COMMAND", options(globalOptions)),
            section("ENVIRONMENT", Mdoc.list(ManualText.environment.map { (variables($0.names), $0.meaning) })),
            section("FILES", Mdoc.list(ManualText.files.map { ("Pa \(Mdoc.argument($0.path))", $0.meaning) })),
            section("EXIT STATUS", Mdoc.list(ExitStatus.meanings.map { (status($0.0), $0.1) })),
            section("EXAMPLES", examples(ManualText.examples)),
            section("SEE ALSO", Mdoc.paragraph(ManualText.seeAlso)),
        ]
        return sections.joined().joined(separator: "\n") + "\n"
    }

    private static var head: [String] {
        [".\\\" Made by 'fk man' from its tables of commands.", ".Dd \(date)", ".Dt FK 1", ".Os"]
    }

    /// The day of the release as mdoc wants it: `November 22, 2026`.
    private static var date: String {
        let months = [
            "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December",
        ]
        let parts = Version.date.split(separator: "-").compactMap { Int($0) }
        return "\(months[parts[1] - 1]) \(parts[2]), \(parts[0])"
    }

    private static func section(_ title: String, _ lines: some Sequence<String>) -> [String] {
        [".Sh \(title)"] + lines
    }

    private static let name = [".Nm fk", ".Nd \(ManualText.summary)"]

    private static let synopsis = [
        ".Nm", ".Ar command", ".Op Ar options", ".Op Ar arguments", ".Nm", ".Cm help", ".Op Ar command", ".Nm",
        ".Fl \\-version",
    ]

    private static func command(_ spec: CommandSpec) -> [String] {
        var lines = [".Ss fk \(spec.name)"]
        let words = spec.path.map { "Cm \($0)" } + (spec.options.isEmpty ? [] : ["Oo Ar options Oc"])
        lines.append(".D1 Nm fk " + (words + spec.operands.map(Mdoc.operand)).joined(separator: " "))
        lines.append(".Pp")
        lines += Mdoc.paragraph(Mdoc.sentence(spec.summary))
        if let aliases = spec.aliasText { lines += [".Pp"] + Mdoc.paragraph(aliases + ".") }
        for paragraph in spec.discussion { lines += [".Pp"] + Mdoc.paragraph(paragraph) }
        if !spec.operands.isEmpty {
            lines += Mdoc.list(spec.operands.map { ("Ar \(Mdoc.argument($0.name))", $0.help) })
        }
        let sections = OptionTopic.sections(spec.options)
        for (topic, specs) in sections {
            if sections.count > 1 { lines += [".Pp", "\(topic.title):"] }
            lines += options(specs)
        }
        return lines + [".Pp", spec.examples.count > 1 ? "Examples:" : "Example:"] + examples(spec.examples)
    }

    private static func options(_ specs: [OptionSpec]) -> [String] {
        Mdoc.list(specs.map { (Mdoc.option($0), $0.help) })
    }

    /// The meaning as a sentence that ends in a colon, then the command lines.
    private static func examples(_ examples: [CommandSpec.Example]) -> [String] {
        Mdoc.literal(
            examples.enumerated().flatMap { index, example in
                (index > 0 ? [""] : []) + ["# \(example.meaning)", example.line]
            })
    }

    private static func variables(_ names: [String]) -> String {
        names.map { "Ev \(Mdoc.argument($0))" }.joined(separator: " , ")
    }

    private static func status(_ text: String) -> String { "\"\(text)\"" }
}
