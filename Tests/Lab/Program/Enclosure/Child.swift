import Glibc

/// A child process with its input and outputs on pipes.
final class Child {
    /// How a process ended.
    enum Ending: Equatable, CustomStringConvertible {
        case exited(Int32)
        case killed(Int32)

        /// Decodes the status that `waitpid` returns.
        init(waitStatus status: Int32) {
            let signal = status & 0x7f
            self = signal == 0 ? .exited((status >> 8) & 0xff) : .killed(signal)
        }

        var description: String {
            switch self {
            case .exited(let status): "ended with status \(status)"
            case .killed(let signal): "was ended by \(String(cString: strsignal(signal))) (\(signal))"
            }
        }
    }

    /// The output that a line came from.
    enum Stream: String {
        case output
        case errors
    }

    let name: String
    let process: pid_t
    /// Called with each line that the process prints.
    var onLine: ((Stream, String) -> Void)?
    /// Set once the process has been waited for.
    var ending: Ending?
    /// Whether the process may end at any time.
    var mayEnd: Bool

    private var input: Int32
    private(set) var outlets: [Stream: Int32]
    private var buffers: [Stream: LineBuffer] = [.output: LineBuffer(), .errors: LineBuffer()]

    /// Starts `command`, which is looked up in the PATH.
    init(_ name: String, _ command: [String], environment: [String], mayEnd: Bool) throws {
        self.name = name
        self.mayEnd = mayEnd
        let toChild = try Spawning.pipe()
        let output = try Spawning.pipe()
        let errors = try Spawning.pipe()
        defer { for end in [toChild.reading, output.writing, errors.writing] { close(end) } }
        process = try Spawning.spawn(
            command, environment: environment,
            descriptors: [(toChild.reading, 0), (output.writing, 1), (errors.writing, 2)])
        input = toChild.writing
        outlets = [.output: output.reading, .errors: errors.reading]
        for outlet in outlets.values { _ = fcntl(outlet, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeInput()
        for outlet in outlets.values { close(outlet) }
    }

    /// Writes a line to its input. A process that has ended does not read it.
    func writeLine(_ line: String) {
        guard input >= 0 else { return }
        let bytes = Array((line + "\n").utf8)
        _ = write(input, bytes, bytes.count)
    }

    /// Closes its input: the process reads the end.
    func closeInput() {
        guard input >= 0 else { return }
        close(input)
        input = -1
    }

    /// Sends a signal, unless the process has ended.
    func signal(_ number: Int32) {
        guard ending == nil else { return }
        kill(process, number)
    }

    /// Whether the process has ended and everything it printed has been read.
    var isOver: Bool { ending != nil && outlets.isEmpty }

    /// Reads what `stream` has now.
    func read(_ stream: Stream) {
        guard let outlet = outlets[stream] else { return }
        let hasEnded = withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { room in
            while true {
                let count = Glibc.read(outlet, room.baseAddress, room.count)
                if count > 0 {
                    for line in buffers[stream]?.take(room[..<count]) ?? [] { onLine?(stream, line) }
                    continue
                }
                if count < 0, errno == EINTR { continue }
                return count == 0 || errno != EAGAIN
            }
        }
        guard hasEnded else { return }
        if let line = buffers[stream]?.takeRest() { onLine?(stream, line) }
        close(outlet)
        outlets[stream] = nil
    }
}

/// Splits bytes that arrive in pieces into lines.
struct LineBuffer {
    private var rest: [UInt8] = []

    /// Returns the lines that `bytes` complete.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        rest += bytes
        var lines: [String] = []
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: rest[..<end], as: UTF8.self))
            rest.removeSubrange(...end)
        }
        return lines
    }

    /// Removes and returns what follows the last complete line.
    mutating func takeRest() -> String? {
        guard !rest.isEmpty else { return nil }
        defer { rest = [] }
        return String(decoding: rest, as: UTF8.self)
    }
}
