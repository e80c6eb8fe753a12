/// The version of the project.
package enum Version {
    /// What `fk --version` prints and what servers see in `User-Agent`.
    package static let text = "0.1.0"
}
