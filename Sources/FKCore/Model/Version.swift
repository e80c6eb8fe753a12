/// The version of the project.
package enum Version {
    /// What `fk --version` prints and what servers see in `User-Agent`. It ends with `-dev` until the commit is tagged.
    package static let text = "2.0.0-dev"

    /// The day of the release, as `fk man` prints it and as packages date their files.
    package static let date = "2026-11-22"
}
