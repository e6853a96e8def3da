import Glibc
import NighLoop
import NighUV
import Synchronization

/// The program that a scenario runs on its hosts: a session that takes commands line by line.
enum PeerProgram {
    /// The pipe that signals write to. It is created before a handler is installed, because a handler must not create
    /// it.
    private static let wakeDescriptors: (reading: Int32, writing: Int32) = {
        guard let pipe = try? Spawning.pipe() else { preconditionFailure("no pipe could be made") }
        return pipe
    }()

    private static func wake() { _ = write(wakeDescriptors.writing, "!", 1) }

    /// Runs until a line, a signal or the end of its input tells it to quit, or until it has exchanged
    /// everything; returns the exit status.
    static func main(_ arguments: [String]) -> Int32 {
        do {
            let options = try PeerOptions(arguments)
            if options.wantsHelp {
                print(PeerOptions.help)
                return 0
            }
            let conductor = try Conductor(options, exchanged: wake)
            let wake = wakeDescriptors.reading
            for number in [SIGINT, SIGTERM] { signal(number) { _ in PeerProgram.wake() } }
            conductor.start()
            readCommands(from: options.exchangeCount == nil ? STDIN_FILENO : -1, or: wake, conductor)
            conductor.finish()
            return 0
        } catch {
            CommandLineOfLab.complain("lab peer: \(error)")
            return 2
        }
    }

    /// Passes on lines until there is a reason to end. If `input` is negative, `wake` is the only reason.
    private static func readCommands(from input: Int32, or wake: Int32, _ conductor: Conductor) {
        var lines = LineBuffer()
        var room = [UInt8](repeating: 0, count: 4_096)
        while true {
            var sources = [input, wake].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&sources, nfds_t(sources.count), -1) > 0 else { continue }
            if sources[1].revents != 0 { return }
            let count = read(input, &room, room.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            for line in lines.take(room[..<count]) {
                guard conductor.perform(line) else { return }
            }
        }
    }
}

/// Prints whole lines from any thread.
final class LineWriter: Sendable {
    /// The last line of each kind of event and peer that is printed only when it changes.
    private let last = Mutex<[String: String]>([:])

    func writeLine(_ line: String) { last.withLock { _ in Self.write(line) } }

    /// Prints `event` and `words`, unless they are what was printed last for it, or `first` if nothing was.
    func writeIfChanged(_ event: String, _ words: String, from first: String? = nil) {
        last.withLock { last in
            guard last[event] ?? first != words else { return }
            last[event] = words
            Self.write("\(event) \(words)")
        }
    }

    /// Forgets what was printed last for `event`; returns whether something was.
    func forget(_ event: String) -> Bool { last.withLock { $0.removeValue(forKey: event) != nil } }

    private static func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
