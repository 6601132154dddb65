/// The version of this project, which all its programs share (semantic versioning 2.0).
package let productVersion = "1.0.0"
