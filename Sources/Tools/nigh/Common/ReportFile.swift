import Arguments
import Glibc
import ProgramSupport

/// A file that a command writes at its end, such as a report.
struct ReportFile: Sendable {
    let path: String
    /// The option that names the file, for errors.
    private let option: String
    private let overwrites: Bool

    /// The error that the file cannot be written.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    init(_ path: String, option: String, overwrites: Bool) {
        self.path = path
        self.option = option
        self.overwrites = overwrites
    }

    /// Throws at the beginning if writing the file would fail at the end.
    func check() throws {
        var status = stat()
        if stat(path, &status) == 0 {
            guard overwrites else { throw UsageError("\(option): \(path) exists; --force overwrites it") }
            guard status.st_mode & S_IFMT != S_IFDIR else {
                throw UsageError("\(option): \(path) is a folder")
            }
            guard access(path, W_OK) == 0 else {
                throw UsageError("\(option): cannot write to \(path): \(String(cString: strerror(errno)))")
            }
            return
        }
        let folder =
            path.contains("/")
            ? path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
                + "/" : "."
        guard access(folder, W_OK) == 0 else {
            throw UsageError("\(option): cannot write in \(folder): \(String(cString: strerror(errno)))")
        }
    }

    /// Writes the file.
    func write(_ text: String) throws {
        let flag = overwrites ? O_TRUNC : O_EXCL
        // Opening a pipe that nobody reads must fail and not wait. Writing to a pipe that is read may wait.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flag, 0o644)
        guard descriptor >= 0 else {
            throw Failure(
                description: "the report cannot be written to \(path): \(String(cString: strerror(errno)))")
        }
        _ = fcntl(descriptor, F_SETFL, O_WRONLY)
        let isWritten = LineOutput.write(text, to: descriptor)
        guard close(descriptor) == 0, isWritten else {
            throw Failure(description: "the report could not be written completely to \(path)")
        }
    }
}
