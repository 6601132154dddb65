/// The version of this project, which all its programs share (semantic versioning 2.0).
package let productVersion = "1.0.0"

/// The commit and its date, which `git archive` writes here (`export-subst` in .gitattributes).
private let commit = "$Format:%h, %cs$"

/// The version with the commit, for `--version`.
package let productBuild =
    productVersion + (commit.hasPrefix("$") ? " (development build)" : " (\(commit))")
