import TestSupport
import Testing

@testable import fk

@Suite("The manual page") struct ManualTests {
    @Test("It has every command, option, variable, file and exit status, in ASCII") func whole() {
        let text = CommandTable.manual
        #expect(text.utf8.allSatisfy { $0 < 0x7f })
        for spec in CommandTable.all {
            #expect(text.contains("\n.Ss fk \(spec.name)\n"))
            for option in spec.options + CommandTable.globalOptions {
                #expect(text.contains(".It \(Mdoc.option(option))\n"), "\(spec.name) --\(option.long)")
            }
        }
        for names in ManualText.environment.map(\.names) { #expect(names.allSatisfy { text.contains("Ev \($0)") }) }
        for (status, _) in ExitStatus.meanings { #expect(text.contains(".It \"\(status)\"\n")) }
        let titles = text.split(separator: "\n").filter { $0.hasPrefix(".Sh ") }.map { String($0.dropFirst(4)) }
        #expect(
            titles == [
                "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS OF EVERY COMMAND", "ENVIRONMENT", "FILES",
                "EXIT STATUS", "EXAMPLES", "SEE ALSO",
            ])
    }

    @Test("mandoc has nothing to say about it") func lint() async throws {
        let mandoc = ["/usr/bin/mandoc", "/opt/homebrew/bin/mandoc"].first(where: FileManager.default.isExecutableFile)
        guard let mandoc else { return }
        let page = try await FKProgram.run(["man"])
        #expect(page.status == 0 && page.errors.isEmpty)
        let folder = try TemporaryFolder()
        let path = try folder.write(page.output, "fk.1")
        let result = try await FKProgram.run(mandoc, ["-T", "lint", path])
        #expect(result.output.isEmpty, "\(result.output)")
        #expect(result.status == 0)
    }

    @Test("Texts cannot become macros, and hyphens of options stay hyphens") func escaping() {
        #expect(Mdoc.paragraph("One. Two 'three'.") == ["One.", "Two \\(aqthree\\(aq."])
        #expect(Mdoc.paragraph(".Sh no\\macro") == ["\\&.Sh no\\emacro"])
        #expect(Mdoc.paragraph("a well-known -x and --limit-rate") == ["a well-known \\-x and \\-\\-limit\\-rate"])
        #expect(Mdoc.literal(["'a' -b"]) == [".Bd -literal -offset indent", "\\(aqa\\(aq \\-b", ".Ed"])
        #expect(Mdoc.argument("'Name: value'") == "\"\\(aqName: value\\(aq\"")
    }

    @Test("Every command has an example, and each example is a command line that parses") func examples() throws {
        for spec in CommandTable.all { #expect(!spec.examples.isEmpty, "fk \(spec.name)") }
        for example in CommandTable.all.flatMap(\.examples) + ManualText.examples {
            for line in example.line.split(separator: " && ") {
                let words = line.split(separator: " ").prefix { $0 != ">" && $0 != "|" }.map(String.init)
                #expect(words.first == "fk")
                #expect(throws: Never.self, "\(line)") { try CommandTable.parser.parse(Array(words.dropFirst())) }
            }
        }
    }

    @Test("Options stand under headings, in one order") func topics() throws {
        let get = try #require(CommandTable.all.first { $0.path == ["get"] })
        let sections = OptionTopic.sections(get.options)
        #expect(
            sections.map(\.topic.title) == ["Files", "Speed", "Network", "Security", "Background", "Many machines"])
        #expect(sections.flatMap(\.options).count == get.options.count)
        let help = HelpText(usesColor: false).text(["get"])
        for title in sections.map(\.topic.title) { #expect(help.contains("\n\(title):\n")) }
        #expect(HelpText(usesColor: false).text(["list"]).contains("\nOptions:\n"))
    }
}
