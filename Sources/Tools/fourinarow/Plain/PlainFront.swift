import FourInARow
import Glibc
import NighCore
import ProgramLife

/// Shows the game in lines on the standard output, and takes what is typed from the standard input; the end of that ends the program.
///
/// `@unchecked Sendable`: what is said is guarded by the lock.
final class PlainFront: Front, @unchecked Sendable {
    private let output: LineOutput
    private let lock = Lock()
    private var talk: PlainTalk?
    private let reader = LoopThread()
    private let stopPipe: (read: Int32, write: Int32)

    /// Throws where there are no descriptors left.
    init(_ output: LineOutput) throws(NighError) {
        self.output = output
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw NighError(.starting, .system(errno, String(cString: strerror(errno))))
        }
        stopPipe = (ends[0], ends[1])
    }

    deinit {
        close(stopPipe.read)
        close(stopPipe.write)
    }

    func start(_ view: LobbyView, wished: @escaping @Sendable (Wish) -> Void) throws {
        let talk = PlainTalk(view)
        lock.withLock { self.talk = talk }
        say(talk.greeting)
        try reader.start { [self] in read(wished) }
    }

    func show(_ view: LobbyView, _ news: LobbyNews?) {
        say(lock.withLock { talk?.lines(for: view, news) } ?? [])
    }

    func refused(_ breach: Breach) {
        guard let view = lock.withLock({ talk?.view }) else { return }
        tell(Sentences.sentence(for: breach, in: view))
    }

    func tell(_ words: String) { say([PlainTalk.spoken(words)]) }

    func stop() {
        _ = write(stopPipe.write, [0], 1)
        reader.join()
    }

    private func say(_ lines: [String]) { output.lines(lines) }

    // MARK: Reading

    private func read(_ wished: @Sendable (Wish) -> Void) {
        var unread: [UInt8] = []
        while let bytes = nextBytes() {
            guard !bytes.isEmpty else {
                take(unread, wished)
                return wished(.quit)
            }
            unread += bytes
            while let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                take(Array(unread[..<end]), wished)
                unread.removeFirst(end + 1)
            }
            // Nobody types that much on a line.
            if unread.count > Self.lineLimit { unread = [] }
        }
    }

    private static let lineLimit = 4_096

    private func take(_ line: [UInt8], _ wished: @Sendable (Wish) -> Void) {
        guard let reply = lock.withLock({ talk?.reply(to: String(decoding: line, as: UTF8.self)) }) else {
            return
        }
        say(reply.lines)
        for wish in reply.wishes { wished(wish) }
    }

    /// What comes next; empty at the end, nil when it is to stop.
    private func nextBytes() -> [UInt8]? {
        var watched = [
            pollfd(fd: stopPipe.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            guard poll(&watched, 2, -1) >= 0 || errno == EINTR else { return nil }
            if watched[0].revents != 0 { return nil }
            guard watched[1].revents != 0 else { continue }
            var bytes = [UInt8](repeating: 0, count: 1_024)
            let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            return Array(bytes.prefix(max(count, 0)))
        }
    }
}
