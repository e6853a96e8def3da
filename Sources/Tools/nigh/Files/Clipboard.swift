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
        try run(readers, input: nil, output: output)
        guard output.status?.st_size ?? 0 <= limit else {
            throw FileFailure("the clipboard has more than \(limit >> 20) MiB")
        }
        guard let content = output.content else { throw .system("reading the clipboard") }
        guard !content.isEmpty else { throw FileFailure("the clipboard is empty") }
        return content
    }

    /// Puts bytes into the clipboard. Blocks the thread.
    static func write(_ bytes: [UInt8]) throws(FileFailure) {
        try run(writers, input: temporaryFile(holding: bytes), output: nil)
    }

    /// Makes bytes the standard input of this program.
    static func replaceStandardInput(with bytes: [UInt8]) throws(FileFailure) {
        let file = try temporaryFile(holding: bytes)
        guard withExtendedLifetime(file, { dup2(file.number, STDIN_FILENO) }) >= 0 else {
            throw .system("reading the clipboard")
        }
    }

    /// Returns a file without a name that has this content and is read from its beginning.
    private static func temporaryFile(holding bytes: [UInt8] = []) throws(FileFailure) -> OpenDescriptor {
        var template = temporaryPath
        let number = mkstemp(&template)
        guard number >= 0 else { throw .system("using the clipboard") }
        unlink(template)
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        let file = OpenDescriptor(number)
        guard bytes.withUnsafeBytes({ file.write($0, at: 0) }) else { throw .system("using the clipboard") }
        return file
    }

    /// The path of a temporary file or folder of this user, as `mkstemp` and `mkdtemp` take it.
    static var temporaryPath: [CChar] {
        let folder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? "/tmp"
        return Array("\(folder)/nigh-clip-XXXXXX".utf8CString)
    }

    /// Runs the first of the commands that is installed.
    private static func run(
        _ commands: [[String]], input: OpenDescriptor?, output: OpenDescriptor?
    ) throws(FileFailure) {
        defer { withExtendedLifetime((input, output)) {} }
        for command in commands {
            guard let status = ChildProgram.run(command, input: input?.number, output: output?.number) else {
                continue
            }
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
