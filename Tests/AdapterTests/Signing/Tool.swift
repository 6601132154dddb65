import Foundation
import Testing

/// Runs a program that may be missing.
enum Tool {
    struct Result {
        let status: Int32
        let output: String
    }

    static func run(_ arguments: [String], input: String = "") throws -> Result {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        let (standardInput, standardOutput) = (Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = standardOutput
        process.standardError = FileHandle.nullDevice
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let output = try standardOutput.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus,
            output: String(decoding: output, as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines))
    }

    static let hasOpenSSL = (try? run(["openssl", "version"]).status) == 0
    static let hasJOSE =
        (try? run(["python3", "-c", "import joserfc, cryptography"]).status) == 0
}

let needsOpenSSL: Comment = "the openssl command line is not installed"
let needsJOSE: Comment = "python3 with joserfc and cryptography is not installed"
