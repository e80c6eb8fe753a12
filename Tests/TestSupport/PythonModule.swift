import Foundation

/// A Python module that is no package of Debian. `.ci/needs test` installs it with pip into a folder of `.build`; Python also
/// looks in its own places.
package struct PythonModule: Sendable {
    package static let aria2p = PythonModule("aria2p", in: "aria2p")
    package static let inToto = PythonModule("in_toto_attestation.v1.statement", in: "in-toto-attestation")
    package static let hub = PythonModule("huggingface_hub", in: "huggingface_hub")

    private let path: String
    /// True if Python can import it.
    package let isInstalled: Bool

    private init(_ name: String, in folder: String) {
        path = Repository.url(".build/\(folder)").path
        let python = Program.find("python3")
        let environment = Self.environment(path)
        isInstalled =
            python.flatMap { try? ChildProcess([$0, "-c", "import \(name)"], environment: environment) }?.end() == 0
    }

    private static func environment(_ path: String) -> [String: String] {
        ["PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": "/tmp"]
    }

    /// The environment with which Python finds the module.
    package var environment: [String: String] { Self.environment(path) }

    /// Runs a program to its end.
    ///
    /// - Throws: `Program.Failure` with its output unless it ends with 0.
    package func run(_ script: String, in folder: URL) throws {
        let code = "import sys; sys.path.insert(0, sys.argv[1]); exec(sys.argv[2])"
        try Program.run("python3", ["-c", code, path, script], in: folder)
    }
}
