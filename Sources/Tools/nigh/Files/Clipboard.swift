import Glibc
import NighCore
import NighFiles

/// The clipboard of the user's desktop, which other programs read and write: `wl-paste` and `wl-copy` on Wayland,
/// `xclip` or `xsel` on X.
enum Clipboard {
    /// The most bytes that are taken.
    static let limit = 16 << 20

    private static let readers = [
        ["wl-paste", "--no-newline"], ["xclip", "-selection", "clipboard", "-out"],
        ["xsel", "--clipboard", "--output"],
    ]
    private static let writers = [
        ["wl-copy"], ["xclip", "-selection", "clipboard", "-in"], ["xsel", "--clipboard", "--input"],
    ]

    /// Reads the clipboard. Blocks the thread.
    static func read() throws(FileFailure) -> [UInt8] {
        let output = try temporaryFile()
        defer { close(output) }
        try run(readers, input: nil, output: output)
        let size = Int(lseek(output, 0, SEEK_END))
        guard size <= limit else { throw FileFailure("the clipboard has more than \(limit >> 20) MiB") }
        guard size > 0 else { throw FileFailure("the clipboard is empty") }
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = max(0, pread(output, buffer.baseAddress, size, 0))
        }
    }

    /// Puts bytes into the clipboard. Blocks the thread.
    static func write(_ bytes: [UInt8]) throws(FileFailure) {
        let input = try temporaryFile()
        defer { close(input) }
        let written = bytes.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
        guard written == bytes.count, lseek(input, 0, SEEK_SET) == 0 else {
            throw .system("writing the clipboard")
        }
        try run(writers, input: input, output: nil)
    }

    /// Makes bytes the standard input of this program.
    static func replaceStandardInput(with bytes: [UInt8]) throws(FileFailure) {
        let file = try temporaryFile()
        defer { close(file) }
        let written = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        guard written == bytes.count, lseek(file, 0, SEEK_SET) == 0, dup2(file, STDIN_FILENO) >= 0 else {
            throw .system("reading the clipboard")
        }
    }

    /// Returns a file without a name, which only this program has.
    private static func temporaryFile() throws(FileFailure) -> Int32 {
        let folder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(folder)/nigh-clip-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw .system("using the clipboard") }
        unlink(template)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        return file
    }

    /// Runs the first of the commands that is installed.
    private static func run(_ commands: [[String]], input: Int32?, output: Int32?) throws(FileFailure) {
        for command in commands {
            guard let status = ChildProgram.run(command, input: input, output: output) else { continue }
            guard status == 0 else {
                throw FileFailure(
                    "\(command[0]) ended with status \(status): is there a desktop, and is its clipboard set?"
                )
            }
            return
        }
        throw FileFailure(
            "no program for the clipboard is installed: install wl-clipboard for Wayland, or xclip for X")
    }
}
