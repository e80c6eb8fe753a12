import Foundation
import SwiftIfConfig
import SwiftParser
import SwiftSyntax

// The checks of `.ci/apple`: apple NAMES SHIMS GLIBC FILE...
// SHIMS has CSystem's header as each system's preprocessor leaves it, GLIBC the names that Swift sees in Linux's C library.

/// One of Apple's systems, as `#if` asks about it.
struct System: BuildConfiguration {
    static let all = ["macOS", "iOS", "tvOS", "watchOS", "visionOS"].map { System(name: $0) }
    let name: String
    /// The modules that the files may ask for. Package.swift gives libcurl to macOS alone, and libcrypto to Linux alone.
    private var modules: [String: Bool] {
        [
            "Darwin": true, "ObjectiveC": true, "CryptoKit": true, "os": true, "CLibcurl": name == "macOS",
            "CLibcrypto": false,
            "Glibc": false, "Musl": false, "FoundationNetworking": false, "FoundationXML": false,
        ]
    }
    struct Unknown: Error { let condition: String }

    func canImport(importPath: [(TokenSyntax, String)], version: CanImportVersion) throws -> Bool {
        let module = importPath.map(\.1).joined(separator: ".")
        guard let isThere = modules[module] else { throw Unknown(condition: "canImport(\(module))") }
        return isThere
    }
    func isActiveTargetOS(name: String) -> Bool { name == self.name }
    func isActiveTargetRuntime(name: String) -> Bool { name == "_ObjC" }
    func isActiveTargetArchitecture(name: String) -> Bool { name == "arm64" }
    func isActiveTargetObjectFormat(name: String) -> Bool { name == "MachO" }
    func isActiveTargetPointerAuthentication(name: String) -> Bool { false }
    func isActiveTargetEnvironment(name: String) throws -> Bool {
        throw Unknown(condition: "targetEnvironment(\(name))")
    }
    func isCustomConditionSet(name: String) -> Bool { false }
    func hasFeature(name: String) throws -> Bool { throw Unknown(condition: "hasFeature(\(name))") }
    func hasAttribute(name: String) throws -> Bool { throw Unknown(condition: "hasAttribute(\(name))") }
    var targetPointerBitWidth: Int { 64 }
    var targetAtomicBitWidths: [Int] { [8, 16, 32, 64, 128] }
    var endianness: Endianness { .little }
    var languageVersion: VersionTuple { VersionTuple(6) }
    var compilerVersion: VersionTuple { VersionTuple(6, 0) }
}

/// The names of a file that a system compiles.
final class Names: ActiveSyntaxAnyVisitor {
    struct Use { let name: String, isMember: Bool, position: AbsolutePosition }
    private(set) var uses: [Use] = []
    private(set) var imports: [Use] = []
    private(set) var declared: Set<String> = []

    private func use(_ token: TokenSyntax, isMember: Bool = false) -> SyntaxVisitorContinueKind {
        uses.append(Use(name: token.text, isMember: isMember, position: token.positionAfterSkippingLeadingTrivia))
        return .visitChildren
    }
    override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
        let access = node.parent?.as(MemberAccessExprSyntax.self)
        // `Foundation.open` is the C function, and `.open` is a member.
        let module = access?.base?.as(DeclReferenceExprSyntax.self)?.baseName.text
        let isMember = access?.declName.id == node.id && module != "Foundation" && module != "Darwin"
        return use(node.baseName, isMember: isMember)
    }
    override func visit(_ node: IdentifierTypeSyntax) -> SyntaxVisitorContinueKind { use(node.name) }
    override func visit(_ node: MemberTypeSyntax) -> SyntaxVisitorContinueKind { use(node.name, isMember: true) }
    override func visit(_ node: ImportDeclSyntax) -> SyntaxVisitorContinueKind {
        guard let module = node.path.first?.name else { return .skipChildren }
        imports.append(Use(name: module.text, isMember: false, position: module.positionAfterSkippingLeadingTrivia))
        return .skipChildren
    }
    private func declare(_ token: TokenSyntax) -> SyntaxVisitorContinueKind {
        declared.insert(token.text)
        return .visitChildren
    }
    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind { declare(node.name) }
    override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind { declare(node.name) }
    override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind { declare(node.name) }
    override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind { declare(node.name) }
    override func visit(_ node: IdentifierPatternSyntax) -> SyntaxVisitorContinueKind { declare(node.identifier) }
    override func visit(_ node: ClosureShorthandParameterSyntax) -> SyntaxVisitorContinueKind { declare(node.name) }
    override func visit(_ node: FunctionParameterSyntax) -> SyntaxVisitorContinueKind {
        declare(node.secondName ?? node.firstName)
    }
}

struct Rules {
    /// Names with the systems that do not have them.
    var missing: [String: Set<String>] = [:]
    /// The C names that Apple's headers have on all systems.
    var common: Set<String> = []
    var modules: Set<String> = []
    var glibc: Set<String> = []
    /// By system: the words of CSystem's header.
    var shims: [String: Set<String>] = [:]

    init(names: String) {
        for line in names.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ").map(String.init)
            switch words[0] {
            case "common": common.formUnion(words.dropFirst())
            case "modules": modules.formUnion(words.dropFirst())
            case "all": for word in words.dropFirst() { missing[word] = Set(System.all.map(\.name)) }
            case let systems:
                for word in words.dropFirst() { missing[word] = Set(systems.split(separator: ",").map(String.init)) }
            }
        }
    }

    /// What is wrong with a file, a line each.
    func faults(_ path: String, _ tree: SourceFileSyntax, on system: System) -> [String] {
        let names = Names(viewMode: .sourceAccurate, configuration: system)
        names.walk(tree)
        let lines = SourceLocationConverter(fileName: path, tree: tree)
        func fault(_ position: AbsolutePosition, _ what: String) -> String {
            "\(path):\(lines.location(for: position).line): \(what)"
        }
        var faults = names.diagnostics.map { fault($0.position, "\($0.message) on \(system.name)") }
        for use in names.imports
        where !modules.contains(use.name) && !(use.name == "CLibcurl" && system.name == "macOS") {
            faults.append(fault(use.position, "\(system.name) has no module \(use.name)"))
        }
        for use in names.uses where use.isMember || !names.declared.contains(use.name) {
            if missing[use.name]?.contains(system.name) == true {
                faults.append(fault(use.position, "\(system.name) has no \(use.name)"))
            } else if use.isMember {
                continue
            } else if use.name.hasPrefix("fk_"), let shim = shims[system.name], !shim.contains(use.name),
                system.name != "macOS"
            {
                faults.append(fault(use.position, "CSystem has no \(use.name) on \(system.name)"))
            } else if glibc.contains(use.name), !common.contains(use.name), missing[use.name] == nil {
                faults.append(
                    fault(
                        use.position,
                        "\(use.name) is a name of C that is not in .ci/apple.names: look it up in Apple's headers"))
            }
        }
        return faults
    }

    /// Samples with and without faults.
    static func examine() {
        var rules = Rules(
            names: "iOS,tvOS Process fork\nall st_mtim epoll_wait\ncommon open\nmodules Foundation Darwin")
        rules.glibc = ["open", "epoll_wait", "fork", "splice"]
        let samples: [(text: String, on: String, faults: Int)] = [
            ("func a() { fork() }", "iOS", 1), ("func a() { fork() }", "macOS", 0),
            ("#if os(Linux)\nfunc a() { fork() }\n#endif", "iOS", 0),
            ("#if os(Linux)\nlet a = 1\n#else\nfunc a() { fork() }\n#endif", "iOS", 1),
            ("func a() {\n  #if os(macOS) || os(Linux)\n    fork()\n  #else\n    open()\n  #endif\n}", "tvOS", 0),
            ("#if canImport(Darwin) && !os(macOS)\nfunc a() { _ = \"\\(fork())\" }\n#endif", "tvOS", 1),
            ("// fork()\nlet a = \"fork()\"", "iOS", 0), ("let a = { (b: Process?) in b }", "iOS", 1),
            ("extension Process {}", "iOS", 1), ("class A<B: Process> {}", "tvOS", 1),
            ("let a: [A.Process] = []", "iOS", 1),
            ("let a = b.st_mtim", "macOS", 1), ("func fork() {}\nfunc a() { fork() }", "iOS", 0),
            ("func a() { Foundation.fork() }", "iOS", 1), ("func a() { splice() }", "iOS", 1),
            ("func a() { b.splice() }", "iOS", 0),
            ("import Glibc", "iOS", 1), ("#if canImport(Glibc)\nimport Glibc\n#else\nimport Darwin\n#endif", "iOS", 0),
            ("#if canImport(Unknown)\n#endif", "iOS", 1),
            ("#if canImport(CLibcurl)\nfunc a() { splice() }\n#endif", "macOS", 1),
        ]
        for sample in samples {
            let found = rules.faults("sample", Parser.parse(source: sample.text), on: System(name: sample.on))
            if found.count != sample.faults { stop("A sample has other faults: \(sample), \(found)") }
        }
    }
}

func stop(_ reason: String) -> Never {
    print(reason)
    exit(1)
}

@main struct Check {
    static func main() throws {
        Rules.examine()
        let arguments = Array(CommandLine.arguments.dropFirst())
        func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
        var rules = Rules(names: try text(arguments[0]))
        func words(_ text: String) -> Set<String> {
            Set(text.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
        }
        var faults: [String] = []
        for system in System.all {
            let shim = words(try text("\(arguments[1])/\(system.name)"))
            rules.shims[system.name] = shim
            faults += shim.filter { rules.missing[$0]?.contains(system.name) == true }.sorted().map {
                "Sources/CSystem/shim.h: \(system.name) has no \($0)"
            }
        }
        let declarations = try text(arguments[2]).split(separator: "\n").filter { !$0.hasPrefix(" ") }
        rules.glibc = Set(
            declarations.flatMap { line in
                let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
                let keyword = words.firstIndex {
                    ["var", "let", "func", "struct", "typealias", "class", "enum"].contains($0)
                }
                return keyword.map { words.dropFirst($0 + 1).prefix(1).map(String.init) } ?? []
            })
        if !rules.glibc.contains("openat") || rules.glibc.count < 3000 {
            stop("The list of Glibc's names is not whole.")
        }
        for path in arguments.dropFirst(3) {
            let tree = Parser.parse(source: try text(path))
            for system in System.all { faults += rules.faults(path, tree, on: system) }
        }
        var seen: Set<String> = []
        for fault in faults where seen.insert(fault).inserted { print(fault) }
        guard faults.isEmpty else { exit(1) }
        print(
            "\(arguments.count - 3) files have no name that one of \(System.all.map(\.name).joined(separator: ", ")) lacks."
        )
    }
}
