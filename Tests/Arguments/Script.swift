import Glibc

/// A script in a temporary file, which is deleted with the last reference.
final class Script {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    init(_ text: String) throws {
        var name = Array("/tmp/arguments-XXXXXX".utf8CString)
        let descriptor = mkstemp(&name)
        guard descriptor >= 0, let file = fdopen(descriptor, "w") else {
            throw Failure(description: "there is no file: \(errno)")
        }
        path = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        fputs(text, file)
        fclose(file)
    }

    deinit { unlink(path) }

    /// Runs a shell command for up to 60 s; returns the lines of its standard output and standard error.
    static func lines(of command: String) throws -> [String] {
        guard let pipe = popen("exec 2>&1; timeout 60 \(command)", "r") else {
            throw Failure(description: "no shell: \(errno)")
        }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while case let count = fread(&buffer, 1, buffer.count, pipe), count > 0 {
            output += buffer.prefix(count)
        }
        let status = pclose(pipe)
        let text = String(decoding: output, as: UTF8.self)
        guard status == 0 else { throw Failure(description: "\(command) ended with \(status): \(text)") }
        return text.split(separator: "\n").map(String.init)
    }
}
